#!/usr/bin/env python3
"""Writes fixtures/models/<model>.safetensors: 20 steps of each model of models.json with SGD and AdamW, in float64 and float32, by PyTorch.

    tests/reference/generate_models.py

A file holds the data ("input.0", first dimension: batches, which the steps take in turn), the parameters and buffers at the start
("parameter.NAME", float32, exact in both dtypes), and per optimizer and dtype ("sgd/float64/...") "loss.0" (one number per step; "loss.1" of
the second phase) and, after steps 1, 5 and 20, the gradients and the parameters and buffers ("step5/grad.NAME", "step20/parameter.NAME").
"""
import json
import zlib

import numpy as np
import torch

from generate import fill, save
from models import MODELS
from table import HERE, Input

STEPS = 20
SHOWN = (1, 5, 20)


def train(row, model, inputs, optimizer, dtype, tensors):
    prefix = f"{optimizer}/{str(dtype).removeprefix('torch.')}"
    cls = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[optimizer]
    optimizers = [cls(model.trained(phase).parameters(), **row[optimizer]) for phase in range(model.phases)]
    losses = [[] for _ in range(model.phases)]
    for step in range(1, STEPS + 1):
        batch = [x[(step - 1) % x.shape[0]] for x in inputs]
        for phase in range(model.phases):
            optimizers[phase].zero_grad()
            loss = model.loss(phase, batch)
            loss.backward()
            optimizers[phase].step()
            losses[phase].append(loss.item())
        if step in SHOWN:
            for name, parameter in model.named_parameters():
                tensors[f"{prefix}/step{step}/grad.{name}"] = parameter.grad.clone()
            for name, value in model.state_dict().items():
                tensors[f"{prefix}/step{step}/parameter.{name}"] = value.clone()
    for phase in range(model.phases):
        tensors[f"{prefix}/loss.{phase}"] = torch.tensor(losses[phase], dtype=torch.float64)


def main():
    torch.set_num_threads(1)
    folder = HERE / "fixtures" / "models"
    folder.mkdir(parents=True, exist_ok=True)
    for row in json.loads((HERE / "models.json").read_text()):
        name = row["model"]
        torch.manual_seed(zlib.crc32(name.encode()))
        random = np.random.RandomState(zlib.crc32(name.encode()))
        initial = MODELS[name](**row["arguments"])
        inputs = [fill(Input.parse(text), random, torch.float32) for text in row["inputs"]]
        tensors = {f"input.{i}": x for i, x in enumerate(inputs)}
        for parameter, value in initial.state_dict().items():
            tensors[f"parameter.{parameter}"] = value
        for optimizer in ("sgd", "adamw"):
            for dtype in (torch.float64, torch.float32):
                model = MODELS[name](**row["arguments"])
                model.load_state_dict(initial.state_dict())
                model.to(dtype)
                train(row, model, [x.to(dtype) if x.is_floating_point() else x for x in inputs], optimizer, dtype, tensors)
        path = folder / f"{name}.safetensors"
        save(tensors, path, {"case": json.dumps(row, separators=(",", ":")), "torch": torch.__version__.split("+")[0]})
        print(f"{name}: loss {[round(tensors[f'sgd/float64/loss.0'][i].item(), 4) for i in (0, -1)]} with SGD, "
              f"{[round(tensors[f'adamw/float64/loss.0'][i].item(), 4) for i in (0, -1)]} with AdamW, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
