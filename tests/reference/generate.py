#!/usr/bin/env python3
"""Writes fixtures/<family>.safetensors: inputs, results, gradients and double gradients of every case, by PyTorch.

    pip install torch numpy safetensors
    tests/reference/generate.py [FAMILY...]        # all families unless some are named

Values are computed in float64 from inputs rounded to the case's dtype, and rounded once to that dtype in the end, so that a
reference is exact to half a unit in the last place; a row with "native" is computed in its own dtype, and says why. A row with
"autocast" is computed in float32 inside of an autocast region on the CPU, whose dtype is the case's.
"""
import contextlib
import json
import sys
import zlib

import numpy as np
import torch
from safetensors.torch import save_file

import operations
from fills import fill
from table import HERE, Input, families

MAX_BYTES = 6 << 20  # of all fixtures together


def in_layout(tensor, words):
    """The same values with other strides."""
    if "transposed" in words:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    if "expanded" in words:
        return tensor[:1].expand(tensor.shape)
    if "sliced" in words:
        return torch.stack([tensor, torch.zeros_like(tensor)], -1).flatten(-2)[..., ::2]
    return tensor


def random_like(tensor, random):
    return torch.from_numpy(random.normal(size=tuple(tensor.shape))).reshape(tensor.shape)


def run_case(case):
    """Tensors by name ("input.0", "grad_output.0", "output.0", "grad.0", "grad_weight.0", "double.0", "double.grad_output.0")."""
    row = case.row
    random = np.random.RandomState(zlib.crc32(f"{case.op}/{row['name']}".encode()))
    dtype = getattr(torch, case.dtype)
    region = torch.autocast("cpu", dtype) if "autocast" in row else contextlib.nullcontext()
    if "autocast" in row:
        dtype = torch.float32  # of inputs that say nothing else
    working = dtype if row.get("native") or "autocast" in row else torch.float64
    specs = [Input.parse(text) for text in row["inputs"]]
    lower = getattr(torch, case.dtype)
    stored = [None if spec is None else fill(spec, random, lower if "lower" in spec.words else dtype) for spec in specs]
    # One row for all: what is expanded holds the same values along its first dimension.
    stored = [t if t is None or "expanded" not in s.words else t[:1].expand(t.shape).contiguous() for s, t in zip(specs, stored)]
    inputs = []
    for spec, tensor in zip(specs, stored):
        if tensor is None:
            inputs.append(None)
            continue
        x = in_layout(tensor.to(working) if tensor.dtype == dtype and tensor.is_floating_point() else tensor, spec.words).detach()
        if x.is_floating_point() and "fixed" not in spec.words:
            x.requires_grad_()
        inputs.append(x)
    arguments = {name: float(value) if isinstance(value, str) and value in ("inf", "-inf") else value for name, value in row.get("args", {}).items()}
    with region:
        result = operations.find(case.op)(*inputs, **arguments)
    results = list(result) if isinstance(result, (list, tuple)) else [result]

    tensors = {}
    for i, tensor in enumerate(stored):
        if tensor is not None:
            tensors[f"input.{i}"] = tensor

    def back(tensor):  # to the dtype that the case is in; under autocast that is part of the answer
        if "autocast" in row:
            return tensor.detach()
        return tensor.detach().to(dtype) if tensor.dtype == working else tensor.detach()

    for i, tensor in enumerate(results):
        tensors[f"output.{i}"] = back(tensor)
    differentiated = [(i, x) for i, x in enumerate(inputs) if x is not None and x.requires_grad]
    reached = [(i, y) for i, y in enumerate(results) if y.requires_grad]
    if not differentiated or not reached:
        if differentiated:
            raise ValueError("no result has a gradient: mark the inputs as fixed")
        return tensors

    grad_outputs = []
    for i, y in reached:
        g = random_like(y, random).to(y.dtype if "autocast" in row else dtype).to(y.dtype)
        tensors[f"grad_output.{i}"] = back(g)
        grad_outputs.append(g.requires_grad_())
    xs = [x for _, x in differentiated]
    double = row.get("double", True) is True and case.dtype in ("float64", "float32") and "autocast" not in row
    grads = torch.autograd.grad([y for _, y in reached], xs, grad_outputs, create_graph=double, allow_unused=True)
    for (i, x), grad in zip(differentiated, grads):
        tensors[f"grad.{i}"] = back(torch.zeros_like(x) if grad is None else grad)
    if not double:
        return tensors
    total = 0
    for (i, _), grad in zip(differentiated, grads):
        if grad is None:
            continue
        weight = random_like(grad, random).to(dtype).to(grad.dtype)
        tensors[f"grad_weight.{i}"] = back(weight)
        total = total + (grad * weight).sum()
    variables = xs + grad_outputs
    second = [None] * len(variables)
    if isinstance(total, torch.Tensor) and total.requires_grad:  # a gradient may be the same everywhere
        second = torch.autograd.grad(total, variables, allow_unused=True)
    names = [f"double.{i}" for i, _ in differentiated] + [f"double.grad_output.{i}" for i, _ in reached]
    for name, x, grad in zip(names, variables, second):
        tensors[name] = back(torch.zeros_like(x) if grad is None else grad)
    return tensors


def save(tensors, path, metadata):
    """The same bytes each time: the package writes metadata in any order."""
    save_file({name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}, path, metadata)
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[end:])
    path.chmod(0o644)


def main():
    torch.set_num_threads(1)  # sums in one order
    table = families()
    for name in sys.argv[1:]:
        if name not in table:
            sys.exit(f"unknown family '{name}'; known are {', '.join(table)}")
    folder = HERE / "fixtures"
    folder.mkdir(exist_ok=True)
    failed = []
    for family, cases in table.items():
        if sys.argv[1:] and family not in sys.argv[1:]:
            continue
        tensors = {}
        metadata = {"torch": torch.__version__.split("+")[0]}
        for case in cases:
            try:
                found = run_case(case)
            except Exception as error:  # all of them are listed in the end
                failed.append(f"{family}: {case.id}: {type(error).__name__}: {error}")
                continue
            metadata[case.id] = json.dumps(case.description(), separators=(",", ":"))
            for name, tensor in found.items():
                tensors[f"{case.id}/{name}"] = tensor
        save(tensors, folder / f"{family}.safetensors", metadata)
        print(f"{family}: {len(cases)} cases, {len({case.op for case in cases})} operations, "
              f"{(folder / f'{family}.safetensors').stat().st_size} bytes")
    total = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    print(f"{sum(len(cases) for cases in table.values())} cases over {len({c.op for cases in table.values() for c in cases})} "
          f"operations, {total} bytes")
    for line in failed:
        print(line, file=sys.stderr)
    if total > MAX_BYTES:
        sys.exit(f"the fixtures take {total} bytes, more than {MAX_BYTES}: make the shapes smaller")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
