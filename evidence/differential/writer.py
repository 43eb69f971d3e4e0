"""Writes a program line by line, running each line in PyTorch at once, so that the next one can look at shapes and dtypes."""
import math
import random

import numpy as np
import torch

import torch_side
from torch_side import DTYPES

FLOATS = ["float64", "float32", "float16", "bfloat16"]
INTEGERS = ["int64", "int32", "uint8", "bool"]
MAX_ELEMENTS = 200


class Ended(Exception):
    """A refused backward: no further line would run."""


class Writer:
    def __init__(self, seed, number):
        self.random = random.Random(f"{seed}/{number}")
        self.numpy = np.random.RandomState(self.random.getrandbits(31))
        self.id = f"{seed}-{number}"
        self.run = torch_side.Run()
        self.count = 0
        self.dtype = self.random.choices(FLOATS, [4, 4, 2, 2])[0]

    # --- lines
    def name(self):
        self.count += 1
        return f"v{self.count - 1}"

    def add(self, op, inputs=(), outputs=0, **args):
        """The names of the results, or None when the line was refused."""
        line = {"op": op}
        if inputs:
            line["in"] = list(inputs)
        if args:
            line["args"] = args
        if outputs:
            line["out"] = [self.name() for _ in range(outputs)]
        try:
            accepted = self.run.add(line)
        except torch_side.Malformed:  # spoilt so far that it is no call any more
            return None
        if self.run.ended:
            raise Ended
        return line.get("out", []) if accepted else None

    def value(self, name):
        return self.run.session.variables[name]

    def names(self, condition=lambda x: True):
        return [n for n, x in self.run.session.variables.items() if torch_side.is_usable(x) and condition(x)]

    def any(self, condition=lambda x: True):
        """The name of a tensor; a new one when none fits or by chance."""
        names = self.names(lambda x: x.numel() <= MAX_ELEMENTS and condition(x))
        if names and self.random.random() < 0.9:
            return self.random.choice(names[-6:] if self.random.random() < 0.6 else names)
        return self.leaf()

    def chance(self, p):
        return self.random.random() < p

    # --- data
    def shape(self, dims=None):
        if dims is None and self.chance(0.03):  # more dimensions than a Shape holds without the heap
            twos = self.random.randint(1, 5)
            sizes = [2] * twos + [1] * (self.random.randint(9, 11) - twos)
            self.random.shuffle(sizes)
            return sizes
        dims = self.random.choices([0, 1, 2, 3, 4], [2, 6, 8, 5, 1])[0] if dims is None else dims
        return [self.random.choices([0, 1, 2, 3, 4, 5], [1, 6, 10, 10, 4, 2])[0] for _ in range(dims)]

    def values(self, shape, dtype):
        """Numbers that the dtype has: as JSON, so that both sides take the same."""
        count = math.prod(shape)
        kind = self.random.choices(["normal", "uniform", "small integers", "special", "wide"], [6, 3, 5, 0.6, 0.6])[0]
        if dtype == "bool":
            return [self.random.randint(0, 1) for _ in range(count)]
        if dtype in INTEGERS:
            low = 0 if dtype == "uint8" else -4
            return [self.random.randint(low, 9) for _ in range(count)]
        draw = {
            "normal": lambda: self.random.gauss(0, 1),
            "uniform": lambda: self.random.uniform(0.1, 2),
            "small integers": lambda: float(self.random.randint(-3, 3)),
            "special": lambda: self.random.choice([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, 3.0, -6.0, 1e4, -1e4]),
            "wide": lambda: self.random.choice([-1, 1]) * 10 ** self.random.uniform(-6, 4),
        }[kind]
        return json_numbers(torch.tensor([draw() for _ in range(count)], dtype=DTYPES[dtype]))

    def leaf(self, shape=None, dtype=None, values=None, requires_grad=None):
        shape = self.shape() if shape is None else shape
        if dtype is None:
            dtype = self.random.choices([self.dtype, self.random.choice(FLOATS), self.random.choice(INTEGERS)], [14, 3, 4])[0]
        values = self.values(shape, dtype) if values is None else values
        args = {"values": values, "shape": shape, "dtype": dtype}
        if dtype in FLOATS and (self.chance(0.55) if requires_grad is None else requires_grad):
            args["requires_grad"] = True
        return self.add("tensor", outputs=1, **args)[0]

    def number(self, dtype):
        if DTYPES[dtype].is_floating_point:
            return self.random.choice([2, -1, 0.5, 3, -0.75, 1.5, 0, 0.1])
        return self.random.choice([2, 3, -1, 1, 0.5, 0, 2.0, 1.0])

    def dim(self, x, extra=0):
        n = x.dim() + extra
        return self.random.randint(-n, n - 1) if n else self.random.choice([0, -1])

    def dims(self, x):
        n = x.dim()
        chosen = self.random.sample(range(n), self.random.randint(1, n)) if n else []
        return [d - n if self.chance(0.3) else d for d in chosen]


def json_numbers(x):
    """JSON has no infinities: they are text."""
    return [str(v) if isinstance(v, float) and not math.isfinite(v) else int(v) if isinstance(v, bool) else v for v in x.reshape(-1).tolist()]


def one(names):
    return names[0] if names else None


def partner(g, name):
    """A tensor that broadcasts with the named one."""
    x = g.value(name)
    if g.chance(0.5):
        fits = g.names(lambda y: y.numel() <= 60 and broadcasts(x.shape, y.shape))
        if fits:
            return g.random.choice(fits)
    shape = [s if g.chance(0.75) else 1 for s in x.shape]
    if shape and g.chance(0.3):
        shape = shape[g.random.randint(1, len(shape)):]
    if g.chance(0.1):
        shape = [g.random.randint(1, 3)] + [s if g.chance(0.8) else 1 for s in shape]
    dtype = str(x.dtype).split(".")[1] if g.chance(0.7) else None
    return g.leaf(shape, dtype)


def broadcasts(a, b):
    return all(x == y or x == 1 or y == 1 for x, y in zip(reversed(a), reversed(b)))


def broadcasts_to(a, b):
    return len(a) <= len(b) and all(x == y or x == 1 for x, y in zip(reversed(a), reversed(b)))
