#!/usr/bin/env python3
"""Writes fixtures/recipes/gan.json: the losses of 50 steps of the recipe `gan` in float64 on two ranks, by PyTorch in one process.

    tests/reference/generate_recipes.py

Two ranks: each computes the losses of its half of a batch, and the gradients are those of their mean, which is what DDP makes of them.
Parameters and noise come from a formula that both sides compute to the bit (`fill`), images from lab/data/digits.csv.gz, so that the file
holds losses only. The other side: tests/lab/gan_reference_test.cpp, with the networks of lab/recipes/gan.
"""
import json

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from digits import DigitsNet, train_digits
from table import HERE

STEPS, RANKS, BATCH, NOISE, LR = 50, 2, 16, 16, 2e-3


def fill(number, shape, scale):
    """Tensor `number` of a run."""
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    return torch.from_numpy((((i * 7919 + number * 104729 + 1) % 2003) / 1001.5 - 1) * scale).reshape(shape)


def fill_parameters(module, first):
    for number, parameter in enumerate(module.parameters()):
        fan_in = parameter.numel() / parameter.shape[0]
        with torch.no_grad():
            parameter.copy_(fill(first + number, parameter.shape, 1 / np.sqrt(fan_in) if parameter.dim() > 1 else 0.1))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(NOISE + 10, 32 * 4 * 4)
        self.conv1 = nn.Conv2d(32, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 1, 3, padding=1)

    def forward(self, noise, labels):
        wanted = F.one_hot(labels, 10).to(noise.dtype)
        small = F.leaky_relu(self.fc(torch.cat([noise, wanted], 1)), 0.2).reshape(-1, 32, 4, 4)
        return torch.sigmoid(self.conv2(F.leaky_relu(self.conv1(F.interpolate(small, scale_factor=2)), 0.2)))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.head = nn.Linear(32 * 4 * 4, 1)

    def forward(self, images):
        features = F.leaky_relu(self.conv2(F.avg_pool2d(F.leaky_relu(self.conv1(images), 0.2), 2)), 0.2).flatten(1)
        return features, self.head(features)


def called(logits, real):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, real))


def main():
    torch.set_num_threads(1)
    images, labels = train_digits()
    generator, discriminator, perception = Generator().double(), Discriminator().double(), DigitsNet().double()
    fill_parameters(generator, 0)
    fill_parameters(discriminator, 100)
    fill_parameters(perception, 200)
    perception.requires_grad_(False)
    for_generator = torch.optim.Adam(generator.parameters(), lr=LR, betas=(0.5, 0.999))
    for_discriminator = torch.optim.Adam(discriminator.parameters(), lr=LR / 2, betas=(0.5, 0.999))
    losses = {"discriminator": [], "generator": []}
    for step in range(STEPS):
        noise = fill(1000 + step, (BATCH, NOISE), 1.0)
        # Ranks take examples in turns.
        parts = [(images[step * BATCH:(step + 1) * BATCH][rank::RANKS], labels[step * BATCH:(step + 1) * BATCH][rank::RANKS],
                  noise[rank::RANKS]) for rank in range(RANKS)]
        made = [generator(z, y) for _, y, z in parts]

        for_discriminator.zero_grad()
        loss = sum(called(discriminator(x)[1], 0.9) + called(discriminator(fake.detach())[1], 0)
                   for (x, _, _), fake in zip(parts, made)) / RANKS
        loss.backward()
        for_discriminator.step()
        losses["discriminator"].append(loss.item())

        for_generator.zero_grad()
        loss = 0
        for (x, _, _), fake in zip(parts, made):
            with torch.no_grad():
                of_real, _ = discriminator(x)
            of_fake, logits = discriminator(fake)
            loss = loss + (called(logits, 1) + 2 * F.mse_loss(of_fake.mean(0), of_real.mean(0))
                           + 0.1 * F.mse_loss(perception.features(fake), perception.features(x)))
        loss = loss / RANKS
        loss.backward()
        for_generator.step()
        losses["generator"].append(loss.item())
    path = HERE / "fixtures/recipes/gan.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"torch": torch.__version__.split("+")[0], "steps": STEPS, "ranks": RANKS, "batch": BATCH, "lr": LR,
                                "losses": losses}, indent=1) + "\n")
    print(f"{path.name}: discriminator {losses['discriminator'][0]:.6f} -> {losses['discriminator'][-1]:.6f}, "
          f"generator {losses['generator'][0]:.6f} -> {losses['generator'][-1]:.6f}")


if __name__ == "__main__":
    main()
