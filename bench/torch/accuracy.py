"""The cases of `brigade bench follow accuracy` in PyTorch, of the same numbers: reads a case a line, answers a line."""
import json
import sys

import torch


def numbers(count, first):
    """In [0, 1), exact in float32, as lab/bench/follow/accuracy.cpp makes them."""
    low = 0xffffffff
    word = (torch.arange(first, first + count) * 2654435761) & low
    word = ((word ^ (word >> 15)) * 2246822519) & low
    word = ((word ^ (word >> 13)) * 3266489917) & low
    return (((word ^ (word >> 16)) >> 8).double() * 2.0 ** -24).float()


OPERATIONS = {
    "sum": lambda x, y: x.sum(),
    "mean": lambda x, y: x.mean(),
    "var": lambda x, y: x.var(),
    "norm": lambda x, y: x.norm(),
    "sum_columns": lambda x, y: x.reshape(-1, 4).sum(0),
    "dot": torch.dot,
    "matmul": torch.matmul,
    "einsum": lambda x, y: torch.einsum("i,i->", x, y),
    "mv": lambda x, y: torch.mv(x.reshape(4, -1), y[:len(y) // 4]),
    "mv_transposed": lambda x, y: torch.mv(x.reshape(-1, 4).t(), y[:len(y) // 4]),
    "mm": lambda x, y: torch.mm(x.reshape(4, -1), y.reshape(-1, 4)),
}

for line in sys.stdin:
    operation, length = line.split()
    length = int(length) // 4 * 4
    x, y = numbers(length, 0), numbers(length, length)
    apply = OPERATIONS[operation]
    error = (apply(x, y).double() / apply(x.double(), y.double()) - 1).abs().max().item()
    print(json.dumps({"case": line.strip(), "error": error}), flush=True)
