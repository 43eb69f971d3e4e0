#!/usr/bin/env python3
"""Checks that no function in dist is longer than 60 lines, from its signature to its closing brace, as clang-format lays them out."""
import pathlib
import re
import sys

LIMIT = 60


NOT_A_FUNCTION = re.compile(r"\s*(namespace|class|struct|enum|union|extern|if|for|while|switch|do|else|catch|try)\b")


def functions(lines):
    """(number of the first line, lines) of each function at the top level or in a class there."""
    for i, line in enumerate(lines):
        if not line.endswith("{"):
            continue
        # A signature may take several lines: it begins after the end of what stands before it.
        start = i
        while start > 0 and lines[start - 1].strip() and not re.search(r"[;{}]$|^\s*(//|#|public:|private:)", lines[start - 1]):
            start -= 1
        signature = " ".join(lines[start:i + 1])
        indent = len(lines[start]) - len(lines[start].lstrip())
        if indent > 2 or "(" not in signature or NOT_A_FUNCTION.match(signature) or re.search(r"\) = |= \[|return |(?<!operator)\[[&=\w, ]*\]\(", signature):
            continue
        if i > start and lines[start].startswith("template") and NOT_A_FUNCTION.match(lines[start + 1]):
            continue
        end = next((e for e in range(i + 1, len(lines)) if lines[e] == " " * indent + "}"), i)
        yield start + 1, end - start + 1


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    count, wrong = 0, 0
    for path in sorted([*(root / "dist").rglob("*.cpp"), *(root / "dist").rglob("*.h")]):
        lines = path.read_text().split("\n")
        for number, length in functions(lines):
            count += 1
            if length <= LIMIT:
                continue
            wrong += 1
            print(f"{path.relative_to(root)}:{number}: {length} lines, expected at most {LIMIT}: {lines[number - 1].strip()}")
    print(f"{count} functions in dist, {wrong} too long")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
