"""An operation with inputs and arguments of one of its rows in the table of references; sometimes with one thing spoilt."""
import json

import torch

import fills
from table import Input
from table_rows import ROWS
from torch_side import DTYPES
from writer import json_numbers, one

from . import action


@action(24)
def row(g):
    op = g.random.choice(sorted(ROWS))
    chosen = g.random.choice(ROWS[op])
    dtype = g.dtype
    inputs = [None if spec is None else row_input(g, spec, dtype) for spec in (Input.parse(text) for text in chosen["inputs"])]
    args = json.loads(json.dumps(chosen.get("args", {})))
    if g.chance(0.06):
        spoil(g, inputs, args)
    g.add(op, inputs, results_of(op, args), **args)


def results_of(op, args):
    if op in ("sort", "topk", "var_mean", "std_mean", "max_pool1d_with_indices", "max_pool2d_with_indices") or op in ("max", "min") and "dim" in args:
        return 2
    if op == "batch_norm":
        return 3
    return 2 if op in ("split", "chunk", "unbind") else 1


def row_input(g, spec, dtype):
    """A tensor as the row asks for it, or one that is there and has its shape."""
    fits = g.names(lambda x: list(x.shape) == spec.sizes and x.dtype == DTYPES[dtype])
    if fits and spec.fill == "normal" and g.chance(0.5):
        return g.random.choice(fits)
    filled = fills.fill(spec, g.numpy, DTYPES[dtype])
    real = filled.is_floating_point()
    dtype = str(filled.dtype).split(".")[1]
    if not spec.words & Input.LAYOUTS and g.chance(0.2):
        spec.words.add(g.random.choice(["transposed", "sliced"]))
    requires_grad = real and "fixed" not in spec.words and g.chance(0.7)

    def leaf(x):
        return g.leaf(list(x.shape), dtype, json_numbers(x), requires_grad)

    if "transposed" in spec.words and filled.dim() >= 2:
        return one(g.add("transpose", [leaf(filled.transpose(-1, -2).contiguous())], 1, dim0=-1, dim1=-2))
    if "expanded" in spec.words and filled.dim() and filled.shape[0]:
        return one(g.add("expand", [leaf(filled[:1])], 1, size=spec.sizes))
    if "sliced" in spec.words and filled.dim():
        twice = torch.stack([filled, torch.zeros_like(filled)], -1).flatten(-2)
        return one(g.add("slice", [leaf(twice)], 1, dim=-1, start=0, end=twice.shape[-1], step=2))
    return leaf(filled)


def spoil(g, inputs, args):
    """One thing that may be wrong."""
    numbers = [k for k, v in args.items() if isinstance(v, int) and not isinstance(v, bool)]
    if numbers and g.chance(0.5):
        args[g.random.choice(numbers)] += g.random.choice([-7, -1, 1, 5])
        return
    at = g.random.randrange(len(inputs))
    inputs[at] = g.any() if g.chance(0.8) else None if at and g.chance(0.3) else g.leaf()
