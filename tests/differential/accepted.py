"""The differences that accepted.json argues for.

An entry has a name, a reason, and what it takes in: `kinds` of differences; the regular expressions `op` (of the line where it shows),
`torch` and `ours` (of what either side says), `has` (of one operation of the program) and `only` (of all of them); and `check`, the
name of a function below that looks at the program itself. `has`, `only` and `check` are asked about the shrunken program."""
import json
import re

import torch

import torch_side

CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


@check
def has_no_derivative(program, found):
    """PyTorch gives the tensor a history that leads to zeros only: the one that differs, or the root of the refused backward."""
    running = torch_side.Run()
    words = found.where.split()
    line = int(words[1]) if words[0] in ("line", "trace") else len(program["lines"]) - 1
    is_refusal = words[0] == "line"
    for each in program["lines"][:line + (not is_refusal)]:
        running.add(each)
    name = program["lines"][line]["in"][0] if is_refusal else words[-1]
    x = running.session.variables.get(name)
    leaves = [y for y in running.session.variables.values() if torch_side.is_usable(y) and y.requires_grad and y.is_leaf and y is not x]
    if x is None or not x.requires_grad:
        return False
    if x.is_leaf or not leaves:
        return x.is_leaf
    weights = torch.arange(1, x.numel() + 1, dtype=x.dtype).reshape(x.shape)
    try:
        gradients = torch.autograd.grad((x * weights).sum(), leaves, allow_unused=True)
    except RuntimeError:
        return False
    return all(g is None or not g.any() for g in gradients)


@check
def writes_into_itself(program, found):
    """A line in place whose operand is the tensor itself, or shares its memory."""
    running = torch_side.Run()
    for line in program["lines"]:
        inputs = [running.session.variables.get(name) for name in line.get("in", [])]
        if line["op"].endswith("_") and len(inputs) == 2 and all(x is not None for x in inputs):
            if inputs[0].untyped_storage().data_ptr() == inputs[1].untyped_storage().data_ptr():
                return True
        running.add(line)
    return False


@check
def einsum_of_one(program, found):
    return any(line["op"] == "einsum" and len(line["in"]) == 1 for line in program["lines"])


class Accepted:
    def __init__(self, path):
        self.entries = json.loads(path.read_text())

    def find(self, found, program=None):
        """The name of the entry, or None; without a program only those that do not ask about it."""
        for entry in self.entries:
            if self.fits(entry, found) and self.fits_program(entry, found, program):
                return entry["name"]
        return None

    def fits(self, entry, found):
        said = (("torch", found.torch_says), ("ours", found.ours_says))
        return (found.kind in entry["kinds"] and all(re.search(entry[key], text) for key, text in said if key in entry)
                and re.fullmatch(entry.get("op", ".*"), found.op) is not None)

    def fits_program(self, entry, found, program):
        if not {"has", "only", "check"} & set(entry):
            return True
        if program is None:
            return False
        ops = [line["op"] for line in program["lines"]]
        return (any(re.fullmatch(entry.get("has", ".*"), op) for op in ops) and all(re.fullmatch(entry.get("only", ".*"), op) for op in ops)
                and ("check" not in entry or CHECKS[entry["check"]](program, found)))
