#!/usr/bin/env python3
"""Writes fixtures/<family>.jsonl.gz: programs, and what PyTorch gave for them, with bounds.

    pip install torch numpy
    evidence/differential/make_fixtures.py --seed fixtures --count 2000

A program is kept when Brigade agrees with PyTorch on it, when no disturbed run of it in PyTorch (compare.py) comes out in another
shape, and when its bounds are small beside its numbers, so that every processor's roundings are within them."""
import argparse
import gzip
import json
import pathlib

import torch

import compare
import generator
import torch_side
from ours import Ours

HERE = pathlib.Path(__file__).resolve().parent
MAX_BYTES = 3 << 20
FAMILIES = {  # a program belongs to the first family that has one of its operations
    "double_backward": {"create_graph"},
    "inplace": {"add_", "sub_", "mul_", "div_", "copy_", "fill_", "zero_", "neg_", "exp_", "sqrt_", "relu_", "sigmoid_", "tanh_", "leaky_relu_"},
    "backward": {"backward", "grad"},
    "forward": set(),
}


def family_of(program, refused):
    if refused:
        return "misuse"
    words = {line["op"] for line in program["lines"]} | {k for line in program["lines"] for k, v in line.get("args", {}).items() if v is True}
    return next(family for family, ops in FAMILIES.items() if ops & words or not ops)


def bounded(program, path, entry, result):
    """The entry as it is stored, or None when it is not steady enough."""
    stored = torch_side.encoded(entry)
    x = entry["values"]
    if not x.is_floating_point() or not x.numel():
        disturbed = compare.scatter(program, path, entry, leaves=True)
        return None if disturbed.numel() and disturbed.any() else stored
    furthest = compare.scatter(program, path, entry, leaves=True)
    if not furthest.isfinite().all():
        return None
    bound = compare.SCATTER * furthest.max().item()
    finite = x[x.isfinite()].double().abs()
    largest = finite.max().item() if finite.numel() else 0.0
    if bound > 300 * torch.finfo(x.dtype).eps * max(largest, 1e-3):
        return None
    if bound:
        stored["bound"] = float(f"{bound:.1e}")
    return stored


def holds(stored, entry, actual):
    """Whether the C++ side's comparison would let `actual` pass."""
    allowed = stored.get("bound", 0.0)
    return actual is not None and bool((compare.apart(entry["values"], actual["values"]) <= allowed).all())


def fixture(program, expected, result):
    """A line of the file, or None."""
    record = {"id": program["id"], "lines": program["lines"], "refused": [r["line"] for r in expected["refusals"]], "variables": {}, "gradients": {}}
    written = any(line["op"].endswith("_") for line in program["lines"])
    plain = {line["out"][0] for line in program["lines"] if line["op"] == "tensor"}
    for key in ("variables", "gradients"):
        for name, entry in expected[key].items():
            if key == "variables" and name in plain and not written:
                continue  # as the program says
            stored = bounded(program, (key, name), entry, expected)
            if stored is None or not holds(stored, entry, result[key].get(name)):
                return None
            record[key][name] = stored
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="fixtures")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--program", default=HERE.parent.parent / "build/cpu/bin/differential", type=pathlib.Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    ours = Ours(arguments.program)
    families, kept, number = {}, 0, 0
    while kept < arguments.count:
        batch = [generator.generate(arguments.seed, n) for n in range(number, number + 250)]
        number += 250
        for (program, expected), result in zip(batch, ours.run([p for p, _ in batch])):
            if kept == arguments.count or len(program["lines"]) < 3 or expected["unusable"] or "crash" in result:
                continue
            if compare.difference(program, expected, result) is not None:
                continue
            record = fixture(program, expected, result)
            if record is None or len(json.dumps(record)) > 6000:
                continue
            families.setdefault(family_of(program, record["refused"]), []).append(record)
            kept += 1
    (HERE / "fixtures").mkdir(exist_ok=True)
    total = 0
    for family, records in sorted(families.items()):
        path = HERE / "fixtures" / f"{family}.jsonl.gz"
        text = "".join(json.dumps(r, separators=(",", ":")) + "\n" for r in records)
        path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        total += path.stat().st_size
        print(f"{path.name}: {len(records)} programs, {path.stat().st_size} bytes")
    print(f"{kept} of {number} programs, {total} bytes, PyTorch {torch.__version__.split('+')[0]}")
    if total > MAX_BYTES:
        raise SystemExit(f"the fixtures take {total} bytes, more than {MAX_BYTES}: take fewer")


if __name__ == "__main__":
    main()
