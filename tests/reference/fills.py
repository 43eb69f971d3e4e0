"""How a tensor of a row is filled: the words that stand before its sizes (README.md)."""
import math

import numpy as np
import torch


def fill(spec, random, dtype):
    """A tensor of the case's dtype (integers and bool: their own)."""
    sizes, arguments = spec.sizes, spec.arguments
    count = math.prod(sizes)
    if spec.fill == "int":
        return torch.from_numpy(random.randint(int(arguments[0]), int(arguments[1]), sizes).astype(np.int64).reshape(sizes))
    if spec.fill == "ints":
        return torch.tensor([int(arguments[i % len(arguments)]) for i in range(count)], dtype=torch.int64).reshape(sizes)
    if spec.fill == "bool":
        return torch.from_numpy((random.uniform(size=sizes) < (arguments or [0.5])[0]).reshape(sizes))
    if spec.fill == "bools":
        return torch.tensor([bool(arguments[i % len(arguments)]) for i in range(count)]).reshape(sizes)
    if spec.fill == "normal":
        values = random.normal(size=sizes)
    elif spec.fill == "uniform":
        values = random.uniform(*arguments, size=sizes)
    elif spec.fill == "positive":
        values = random.uniform(0.3, 1.5, size=sizes)
    elif spec.fill == "away":  # from 0, with either sign
        values = random.uniform(0.3, 1.5, size=sizes) * random.choice([-1, 1], size=sizes)
    elif spec.fill == "distinct":  # no two closer than 0.1
        values = (random.permutation(count).reshape(sizes) - count / 2 + 0.25) * 0.1
    elif spec.fill == "probabilities":  # along the last dimension
        values = random.uniform(0.1, 1, size=sizes)
        values = values / values.sum(-1, keepdims=True)
    elif spec.fill == "values":
        values = np.array([arguments[i % len(arguments)] for i in range(count)]).reshape(sizes)
    else:
        raise ValueError(f"unknown fill '{spec.fill}'")
    for word in ("float32", "float64"):
        if word in spec.words:
            dtype = getattr(torch, word)
    return torch.from_numpy(np.asarray(values, dtype=np.float64).reshape(sizes)).to(dtype)
