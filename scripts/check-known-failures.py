#!/usr/bin/env python3
"""Checks that each row of docs/reference/known-failures.md has a test that carries its number, [004.2], and that tests carry no other number."""
import pathlib
import re
import sys

ROW = re.compile(r"^\| (\d{3}\.\d+) \|", re.M)
NUMBER = re.compile(r"\[(\d{3}\.\d+)\]")


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    rows = ROW.findall((root / "docs/reference/known-failures.md").read_text())
    tested = {}
    for path in sorted((root / "tests").rglob("*.cpp")):
        for number in NUMBER.findall(path.read_text()):
            tested.setdefault(number, path.relative_to(root))
    faults = [f"docs/reference/known-failures.md: no test carries [{row}]" for row in rows if row not in tested]
    faults += [f"{path}: [{number}] is no row of docs/reference/known-failures.md" for number, path in tested.items() if number not in rows]
    for fault in faults:
        print(fault)
    print(f"{len(rows)} rows, {len(faults)} wrong")
    return 1 if faults or len(rows) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
