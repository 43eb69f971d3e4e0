"""The differences that accepted.json argues for.

An entry has a name, a reason, and what it takes in: `kinds` of differences; `op`, the operations of the line where it shows; `has`, one
of which the program must contain; the regular expressions `torch` and `ours` of what either side says; and `check`, the name of a
function of accepted_checks.py that looks at the program itself, its arguments and values. `has` and `check` are asked about the shrunken
program. `op` and `has` are names, "a|b", or a group of SETS, "{writes}". Every entry has an `op`, and a message or a check that narrows it
to the arguments that it argues for. Where whatever comes next may show a difference, "*" stands for any operation, and a check looks
for the cause."""
import json
import re

SETS = {
    # Where what was computed before shows in the end: of a backward, of the gradients that it leaves, of a tensor.
    "gradients": "backward|grad|grad_of|gradients|variables",
    "writes": "add_|sub_|mul_|div_|copy_|fill_|zero_|neg_|exp_|sqrt_|relu_|leaky_relu_|sigmoid_|tanh_",
}


def operations(names):
    """The set of "a|{writes}"."""
    for name, members in SETS.items():
        names = names.replace("{" + name + "}", members)
    if not re.fullmatch(r"[a-z0-9_]+(\|[a-z0-9_]+)*", names):
        raise ValueError(f"accepted.json: expected names of operations, got {names!r}")
    return frozenset(names.split("|"))


class Accepted:
    """The entries of a file; `checks` are functions (program, difference, the program that runs ours) by their names."""

    def __init__(self, path, ours, checks):
        self.ours, self.checks = ours, checks
        self.entries = [self.read(entry) for entry in json.loads(path.read_text())]

    def read(self, entry):
        said = f"accepted.json: {entry['name']!r}"
        if not {"check", "torch", "ours"} & set(entry):
            raise ValueError(f"{said} takes in an operation whatever its arguments: expected a check, or a message of one side")
        if "check" in entry and entry["check"] not in self.checks:
            raise ValueError(f"{said} has the check {entry['check']!r}, which accepted_checks.py does not have")
        if entry["op"] == "*" and "check" not in entry:
            raise ValueError(f"{said} takes in any operation without a check")
        sets = {key: operations(entry[key]) for key in ("op", "has") if entry.get(key, "*") != "*"}
        return {**entry, **sets}

    def find(self, found, program=None):
        """The name of the entry, or None; without a program only those that do not ask about it."""
        for entry in self.entries:
            if self.fits(entry, found) and self.fits_program(entry, found, program):
                return entry["name"]
        return None

    def fits(self, entry, found):
        said = (("torch", found.torch_says), ("ours", found.ours_says))
        return (found.kind in entry["kinds"] and all(re.search(entry[key], text) for key, text in said if key in entry)
                and (entry["op"] == "*" or found.op in entry["op"]))

    def fits_program(self, entry, found, program):
        if not {"has", "check"} & set(entry):
            return True
        if program is None:
            return False
        ops = {line["op"] for line in program["lines"]}
        return (("has" not in entry or entry["has"] & ops)
                and ("check" not in entry or self.checks[entry["check"]](program, found, self.ours)))
