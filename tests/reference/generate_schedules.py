#!/usr/bin/env python3
"""Writes tests/optim/data/schedules.json: the rates that schedules of torch.optim.lr_scheduler give the two groups of an SGD.

    tests/reference/generate_schedules.py

tests/optim/lr_scheduler/schedules.h makes the same schedules under the same names. An entry of the file has one line per epoch of EPOCHS,
before which the schedule has taken as many steps: "lr" and "momentum" of each group. An entry of "plateaus" has one per epoch of
PLATEAU_EPOCHS, after the step with that epoch's number of "metrics": "lr", and the best metric so far. Numbers are exact (repr).
"""
import json
import math
import warnings

import torch
from torch.optim.lr_scheduler import (ChainedScheduler, ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, ExponentialLR, LambdaLR,
                                      LinearLR, MultiplicativeLR, MultiStepLR, OneCycleLR, PolynomialLR, ReduceLROnPlateau, SequentialLR,
                                      StepLR)

from table import HERE

# A schedule runs until the last of them.
EPOCHS = [0, 1, 2, 3, 5, 8, 9, 10, 11, 20, 21, 30, 31, 40, 59, 60, 61, 100, 149, 150, 151, 199, 200, 201, 299]
PLATEAU_EPOCHS = [0, 1, 2, 3, 4, 5, 8, 12, 16, 20, 24, 28, 32, 40, 50, 60, 79]


def chain(o):
    return ChainedScheduler([LinearLR(o, 0.1, 1.0, 20), ExponentialLR(o, 0.99)])


SCHEDULES = {
    "StepLR": lambda o: StepLR(o, 7, 0.7),
    "MultiStepLR": lambda o: MultiStepLR(o, [30, 3, 10, 10, 150], 0.3),
    "ExponentialLR": lambda o: ExponentialLR(o, 0.97),
    "PolynomialLR": lambda o: PolynomialLR(o, 150, 2.5),
    "LambdaLR": lambda o: LambdaLR(o, [lambda e: 1.0 / (1 + e), lambda e: 0.95**e]),
    "MultiplicativeLR": lambda o: MultiplicativeLR(o, lambda e: 0.99 + 0.01 / (1 + e)),
    "ConstantLR": lambda o: ConstantLR(o, 0.3, 9),
    "LinearLR": lambda o: LinearLR(o, 0.01, 0.9, 60),
    "LinearLR defaults": lambda o: LinearLR(o),
    "CosineAnnealingLR": lambda o: CosineAnnealingLR(o, 60, 0.001),
    "CosineAnnealingLR to zero": lambda o: CosineAnnealingLR(o, 10),
    "CosineAnnealingWarmRestarts": lambda o: CosineAnnealingWarmRestarts(o, 10, 2, 1e-4),
    "OneCycleLR": lambda o: OneCycleLR(o, max_lr=[0.5, 0.02], total_steps=300),
    "OneCycleLR linear": lambda o: OneCycleLR(o, max_lr=0.5, epochs=60, steps_per_epoch=5, pct_start=0.2, anneal_strategy="linear",
                                              base_momentum=[0.8, 0.7], max_momentum=0.9, div_factor=10, final_div_factor=100,
                                              three_phase=True),
    "warm-up and cosine": lambda o: SequentialLR(o, [LinearLR(o, 0.01, 1.0, 20), CosineAnnealingLR(o, 180, 1e-5)], [20]),
    "sequential of four": lambda o: SequentialLR(
        o, [ConstantLR(o, 0.1, 5), ExponentialLR(o, 0.9), StepLR(o, 20, 0.5), CosineAnnealingWarmRestarts(o, 30)], [10, 60, 150]),
    "sequential with a milestone at 0": lambda o: SequentialLR(o, [LinearLR(o), StepLR(o, 8, 0.5), MultiStepLR(o, [3, 4])], [0, 100]),
    "chained": chain,
    "chained, then polynomial": lambda o: SequentialLR(o, [chain(o), PolynomialLR(o, 100)], [60]),
    "OneCycle in a sequence": lambda o: SequentialLR(o, [ConstantLR(o, 0.5, 100), OneCycleLR(o, max_lr=0.3, total_steps=250)], [59]),
}

PLATEAUS = {
    "defaults": {},
    "relative threshold": {"factor": 0.5, "patience": 2, "threshold": 0.05},
    "largest, with least rates": {"mode": "max", "factor": 0.3, "patience": 1, "threshold": 0.1, "threshold_mode": "abs", "cooldown": 4,
                                  "min_lr": [0.001, 1e-5]},
    "changes too small": {"factor": 0.1, "patience": 0, "eps": 0.0001},
    "absolute threshold": {"patience": 3, "threshold": 0.01, "threshold_mode": "abs", "cooldown": 2},
}


def metric(epoch):
    return math.cos(epoch * 0.7) * 0.5 / (1 + 0.1 * epoch) + (0.2 if epoch > 20 else 0.5 - 0.015 * epoch)


def two_groups():
    groups = [{"params": [torch.zeros(1, requires_grad=True)], "lr": lr} for lr in (0.1, 0.003)]
    return torch.optim.SGD(groups, momentum=0.9)


def of_groups(optimizer, key):
    return [float(group[key]) for group in optimizer.param_groups]


def run(make):
    optimizer = two_groups()
    scheduler = make(optimizer)
    lines = []
    for epoch in range(EPOCHS[-1] + 1):
        if epoch > 0:
            optimizer.step()
            scheduler.step()
        if epoch in EPOCHS:
            lines.append({"epoch": epoch, "lr": of_groups(optimizer, "lr"), "momentum": of_groups(optimizer, "momentum")})
    return lines


def run_plateau(options, metrics):
    optimizer = two_groups()
    scheduler = ReduceLROnPlateau(optimizer, **options)
    lines = []
    for epoch, value in enumerate(metrics):
        optimizer.step()
        scheduler.step(value)
        if epoch in PLATEAU_EPOCHS:
            lines.append({"epoch": epoch, "lr": of_groups(optimizer, "lr"), "best": float(scheduler.best)})
    return lines


def text_of(entries):
    """One line per epoch, so that a difference shows which one it is."""
    return "{\n" + ",\n".join(f"    {json.dumps(name)}: [\n      " + ",\n      ".join(map(json.dumps, lines)) + "\n    ]"
                              for name, lines in entries.items()) + "\n  }"


def main():
    # SequentialLR makes a chain take its first step before any step of the optimizer.
    warnings.filterwarnings("ignore", message=r"Detected call of `lr_scheduler.step\(\)` before")
    metrics = [metric(epoch) for epoch in range(PLATEAU_EPOCHS[-1] + 1)]
    schedules = {name: run(make) for name, make in SCHEDULES.items()}
    plateaus = {name: run_plateau(options, metrics) for name, options in PLATEAUS.items()}
    entries = {
        "torch": json.dumps(torch.__version__.split("+")[0]),
        "epochs": json.dumps(EPOCHS),
        "schedules": text_of(schedules),
        "plateau_epochs": json.dumps(PLATEAU_EPOCHS),
        "metrics": "[\n    " + ",\n    ".join(map(json.dumps, metrics)) + "\n  ]",
        "plateaus": text_of(plateaus),
    }
    path = HERE.parent / "optim" / "data" / "schedules.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text("{\n" + ",\n".join(f"  {json.dumps(key)}: {text}" for key, text in entries.items()) + "\n}\n")
    print(f"{len(schedules)} schedules, {len(plateaus)} of ReduceLROnPlateau, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
