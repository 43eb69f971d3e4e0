#!/usr/bin/env python3
"""Writes fixtures/models/<model>.safetensors: 20 steps of each model of models.json with SGD and AdamW, in float64 and float32, by PyTorch.

    tests/reference/generate_models.py               # both kinds; "plain" or "autocast" for one of them

fixtures/models/autocast/<model>.safetensors: 5 steps of each model of autocast_models.json with SGD, in float32 with the forward inside
of an autocast region on the CPU, in bfloat16 and in float16 ("sgd/bfloat16/...").

A file holds the data ("input.0", first dimension: batches, which the steps take in turn), the parameters and buffers at the start
("parameter.NAME", float32, exact in both dtypes), and per optimizer and dtype ("sgd/float64/...") "loss.0" (one number per step; "loss.1" of
the second phase) and, after steps 1, 5 and 20, the gradients and the parameters and buffers ("step5/grad.NAME", "step20/parameter.NAME").
"""
import contextlib
import json
import sys
import zlib

import numpy as np
import torch

from generate import fill, save
from models import MODELS
from table import HERE, Input

SHOWN = (1, 5, 20)
SHOWN_AUTOCAST = (1, 5)


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def train(row, model, inputs, optimizer, prefix, shown, tensors, region=None):
    cls = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[optimizer]
    optimizers = [cls(model.trained(phase).parameters(), **row[optimizer]) for phase in range(model.phases)]
    losses = [[] for _ in range(model.phases)]
    for step in range(1, shown[-1] + 1):
        batch = [x[(step - 1) % x.shape[0]] for x in inputs]
        for phase in range(model.phases):
            optimizers[phase].zero_grad()
            with region or contextlib.nullcontext():
                loss = model.loss(phase, batch)
            loss.backward()
            optimizers[phase].step()
            losses[phase].append(loss.item())
        if step in shown:
            for name, parameter in model.named_parameters():
                tensors[f"{prefix}/step{step}/grad.{name}"] = parameter.grad.clone()
            for name, value in model.state_dict().items():
                tensors[f"{prefix}/step{step}/parameter.{name}"] = value.clone()
    for phase in range(model.phases):
        tensors[f"{prefix}/loss.{phase}"] = torch.tensor(losses[phase], dtype=torch.float64)


def start(row, tensors):
    """The model's state, and data."""
    name = row["model"]
    torch.manual_seed(zlib.crc32(name.encode()))
    random = np.random.RandomState(zlib.crc32(name.encode()))
    initial = MODELS[name](**row["arguments"])
    inputs = [fill(Input.parse(text), random, torch.float32) for text in row["inputs"]]
    tensors.update({f"input.{i}": x for i, x in enumerate(inputs)})
    for parameter, value in initial.state_dict().items():
        tensors[f"parameter.{parameter}"] = value
    return initial.state_dict(), inputs


def made(row, state, dtype):
    model = MODELS[row["model"]](**row["arguments"])
    model.load_state_dict(state)
    return model.to(dtype)


def write(row, tensors, folder):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{row['model']}.safetensors"
    save(tensors, path, {"case": json.dumps(row, separators=(",", ":")), "torch": torch.__version__.split("+")[0]})
    losses = ", ".join(f"{name} {[round(tensors[name][i].item(), 4) for i in (0, -1)]}" for name in tensors if name.endswith("loss.0"))
    print(f"{row['model']}: {losses}, {path.stat().st_size} bytes")


def main():
    torch.set_num_threads(1)
    folder = HERE / "fixtures" / "models"
    kinds = sys.argv[1:] or ["plain", "autocast"]
    for row in json.loads((HERE / "models.json").read_text()) if "plain" in kinds else []:
        tensors = {}
        state, inputs = start(row, tensors)
        for optimizer in ("sgd", "adamw"):
            for dtype in (torch.float64, torch.float32):
                data = [x.to(dtype) if x.is_floating_point() else x for x in inputs]
                train(row, made(row, state, dtype), data, optimizer, f"{optimizer}/{name_of(dtype)}", SHOWN, tensors)
        write(row, tensors, folder)
    for row in json.loads((HERE / "autocast_models.json").read_text()) if "autocast" in kinds else []:
        tensors = {}
        state, inputs = start(row, tensors)
        for dtype in (torch.bfloat16, torch.float16):
            region = torch.autocast("cpu", dtype)
            train(row, made(row, state, torch.float32), inputs, "sgd", f"sgd/{name_of(dtype)}", SHOWN_AUTOCAST, tensors, region)
        write(row, tensors, folder / "autocast")


if __name__ == "__main__":
    main()
