#!/usr/bin/env python3
"""Checks that every kind of verdict has its file in a folder kinds (dist/diagnosis, dist/errors), which makes what its first line names, that no other file makes one,
and that the table in docs/reference/verdicts.md is what scripts/verdicts-table.py writes."""
import pathlib
import re
import runpy
import sys

MADE = re.compile(r'\.kind = "([a-z_]+)"|(?:verdict_at|new_verdict)\([^;]*?"([a-z_]+)"')


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    table = runpy.run_path(str(root / "scripts/verdicts-table.py"))
    kinds, faults = table["all_kinds"]()
    if not faults:
        faults = table["faults_of_table"]((root / table["DOCUMENT"]).read_text(), kinds)
    files = {name: each.path for each in kinds for name in each.names}
    for path in sorted((root / "dist").rglob("*.cpp")):
        for made in MADE.finditer(path.read_text()):
            kind = made.group(1) or made.group(2)
            if path.parent.name != "kinds":
                faults.append(f"{path.relative_to(root)}: makes a verdict `{kind}`; that belongs to dist/diagnosis/kinds/{kind}.cpp")
            elif files.get(kind) != path:
                faults.append(f"{path.relative_to(root)}: makes a verdict `{kind}` that its first line does not name")
    for fault in faults:
        print(fault)
    print(f"{len(files)} kinds of verdicts in {len(kinds)} files, {len(faults)} wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
