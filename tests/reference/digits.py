"""The digits and their classifier, for the scripts that train recipes in PyTorch."""
import csv
import gzip
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F

FILE = pathlib.Path(__file__).resolve().parents[2] / "lab/data/digits.csv.gz"


def train_digits():
    """The examples to train on (all but every fifth): images [n, 1, 8, 8] in float64, labels [n]."""
    with gzip.open(FILE, "rt") as file:
        rows = torch.tensor([[int(value) for value in row] for i, row in enumerate(csv.reader(file)) if i % 5 != 4])
    return rows[:, :64].double().reshape(-1, 1, 8, 8) / 16, rows[:, 64]


def normalised(images):
    return (images - 0.3053) / 0.3760


class DigitsNet(nn.Module):
    """The names of lab/recipes/digits.h."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 4 * 4, 64)
        self.fc2 = nn.Linear(64, 10)

    def features(self, images):
        small = F.avg_pool2d(F.gelu(self.conv1(normalised(images))), 2)
        return F.gelu(self.fc1(F.gelu(self.conv2(small)).flatten(1)))

    def forward(self, images):
        return self.fc2(self.features(images))
