"""The matrix products of `brigade bench ops` forward, by the OpenBLAS that NumPy brings.

Started by bench/beside_torch.py --openblas, which sets the environment, threads included.
"""
import argparse
import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from follow import follow, repeated  # noqa: E402


def random(*sizes):
    return np.random.default_rng(1).standard_normal(sizes, dtype=np.float32)


def product(name):
    base, _ = name.rsplit(" ", 1)
    if base == "linear 64x784x1024":
        x, weight, bias = random(64, 784), random(1024, 784), random(1024)
        return repeated(lambda: np.add(x @ weight.T, bias))
    if base == "bmm 64x128x64x128":
        a, b = random(64, 128, 64), random(64, 64, 128)
        return repeated(lambda: np.matmul(a, b))
    n = int(base.removeprefix("matmul "))
    a, b = random(n, n), random(n, n)
    return repeated(lambda: np.matmul(a, b))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.3)
    follow(product, parser.parse_args().seconds)


main()
