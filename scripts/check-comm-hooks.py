#!/usr/bin/env python3
"""Checks that each communication hook of dist/comm_hooks/comm_hook.h is run by a test, and that its cost is measured."""
import pathlib
import re
import sys

HEADER = "dist/comm_hooks/comm_hook.h"
# Makes a hook: CommHookPtr fp16_compress_hook();
HOOK = re.compile(r"^CommHookPtr (\w+_hook)\(", re.M)
# A hook of the user's own costs what it does: there is nothing to measure.
NOT_MEASURED = {"make_comm_hook"}
COMMENT = re.compile(r"//.*")
RUN_BY = {
    "tests/dist/comm_hooks_cases.cpp": ("no test runs it", set()),
    "lab/bench/mechanisms.cpp": ("its cost is not measured", NOT_MEASURED),
}


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    hooks = HOOK.findall((root / HEADER).read_text())
    wrong = 0
    for name, (fault, but) in RUN_BY.items():
        text = COMMENT.sub("", (root / name).read_text())
        for hook in hooks:
            if hook not in but and not re.search(rf"\bdist::{hook}\(", text):
                print(f"{HEADER}:1: {hook}: {fault}; add it to {name}")
                wrong += 1
    print(f"{len(hooks)} hooks, {wrong} faults")
    return 1 if wrong or len(hooks) < 7 else 0


if __name__ == "__main__":
    sys.exit(main())
