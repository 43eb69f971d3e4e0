#!/usr/bin/env python3
"""Checks that the operations that ask autocast are those of its table (amp/op_lists.cpp), by the same names."""
import pathlib
import re
import sys

ASKS = re.compile(r'cast_(?:inputs|list)<"(\w+)">')
ROW = re.compile(r'^    \{"(\w+)", "', re.M)


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    asking = {}
    for path in sorted((root / "autograd/ops").glob("*.cpp")):
        for name in ASKS.findall(path.read_text()):
            asking.setdefault(name, path.relative_to(root))
    rows = ROW.findall((root / "amp/op_lists.cpp").read_text())
    wrong = [f'{asking[name]}: asks as "{name}", which amp/op_lists.cpp has no row for' for name in asking if name not in rows]
    wrong += [f'amp/op_lists.cpp: no operation in autograd/ops asks as "{name}"' for name in rows if name not in asking]
    for line in wrong:
        print(line)
    print(f"{len(asking)} operations ask autocast, {len(rows)} rows, {len(wrong)} wrong")
    return 1 if wrong or len(rows) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
