#!/usr/bin/env python3
"""Writes tests/lab/data/<recipe>.safetensors: the loss of each of 50 steps of the recipes charlm and distill in float64, by PyTorch.

    pip install torch numpy safetensors
    tests/reference/generate_charlm_distill.py

A file holds the parameters at the start ("parameter.NAME", float32, exact in float64 too) and "loss" (float64). The data are those of lab/data,
in the order of the files. tests/lab/charlm_test.cpp and distill_test.cpp train from the same parameters on two ranks.
"""
import gzip
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

from digits import DigitsNet, normalised, train_digits

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 50


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp_fc = nn.Linear(width, 4 * width)
        self.mlp_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.c_attn(self.ln_1(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp_proj(F.gelu(self.mlp_fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    """The names of nn/gpt.h. The head's weight is that of the tokens."""

    def __init__(self, vocabulary, positions, width, heads, blocks):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(positions, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.ln_f = nn.LayerNorm(width)
        for name, parameter in self.named_parameters():
            if name.endswith("weight") and parameter.dim() == 2:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


def charlm():
    torch.manual_seed(1)
    text = gzip.open(ROOT / "lab/data/paradise_lost.txt.gz").read()
    code = {letter: i for i, letter in enumerate(sorted(set(text)))}
    text = torch.tensor([code[letter] for letter in text[:len(text) // 10 * 9]])
    block, batch, micro_batches = 16, 32, 2
    model = GPT(len(code), block, 32, 4, 2)
    start = model.state_dict()
    start = {name: value.clone() for name, value in start.items()}
    model.double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        first = torch.arange(step * batch, (step + 1) * batch) * block
        windows = text[first[:, None] + torch.arange(block + 1)]
        mean = 0
        for part in windows.chunk(micro_batches):
            loss = F.cross_entropy(model(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten()) / micro_batches
            loss.backward()
            mean += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(mean)
    return start, losses


class Student(nn.Module):
    """The names of lab/recipes/distill.h."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.fc1 = nn.Linear(8 * 4 * 4, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, images):
        return self.fc2(F.gelu(self.fc1(F.avg_pool2d(F.gelu(self.conv(normalised(images))), 2).flatten(1))))


def distill():
    torch.manual_seed(2)
    images, labels = train_digits()
    pair = nn.ModuleDict({"teacher": DigitsNet(), "student": Student()})
    start = {name: value.clone() for name, value in pair.state_dict().items()}
    pair.double()
    pair["teacher"].requires_grad_(False)
    optimizer = torch.optim.SGD(pair["student"].parameters(), lr=0.05, momentum=0.9)
    batch, temperature, soft = 64, 4, 0.7
    steps_per_epoch = len(labels) // batch
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        chosen = slice(step % steps_per_epoch * batch, (step % steps_per_epoch + 1) * batch)
        teacher, student = pair["teacher"](images[chosen]), pair["student"](images[chosen])
        divergence = F.kl_div(F.log_softmax(student / temperature, 1), F.softmax(teacher / temperature, 1), reduction="batchmean")
        loss = divergence * (soft * temperature * temperature) + F.cross_entropy(student, labels[chosen]) * (1 - soft)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return start, losses


def main():
    torch.set_num_threads(1)
    folder = ROOT / "tests/lab/data"
    folder.mkdir(exist_ok=True)
    for recipe in (charlm, distill):
        start, losses = recipe()
        tensors = {f"parameter.{name}": value.contiguous() for name, value in start.items()}
        tensors["loss"] = torch.tensor(losses, dtype=torch.float64)
        path = folder / f"{recipe.__name__}.safetensors"
        save_file(tensors, path, {"torch": torch.__version__.split("+")[0]})
        print(f"{recipe.__name__}: loss {losses[0]:.6f} -> {losses[-1]:.6f}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
