#!/usr/bin/env python3
"""Checks that every kind of verdict has its file in dist/diagnosis/kinds and its row in docs/verdicts.md, and is made nowhere else.

A file is named after its kind and opens with it: "// slow_rank: what it says." One file may make several kinds, named in that line.
"""
import pathlib
import re
import sys

KIND = re.compile(r"^[a-z_]+$")
MADE = re.compile(r'\.kind = "([a-z_]+)"|verdict_at\([^;]*?"([a-z_]+)"')


def kinds_of_files(root):
    found, faults = {}, []
    for path in sorted((root / "dist/diagnosis/kinds").glob("*.cpp")):
        head = path.read_text().split("\n", 1)[0]
        names = [name.strip() for name in head.removeprefix("// ").split(":", 1)[0].split(",")]
        if not head.startswith("// ") or not all(KIND.match(name) for name in names) or names[0] != path.stem:
            faults.append(f"{path.relative_to(root)}:1: expected '// {path.stem}: what it says.', got '{head}'")
        for name in names:
            found[name] = path
    return found, faults


def kinds_of_table(root):
    text = (root / "docs/verdicts.md").read_text().split("## Kinds", 1)[1]
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    return {kind for row in rows for kind in re.findall(r"`([a-z_]+)`", row.split("|")[1])}


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    files, faults = kinds_of_files(root)
    table = kinds_of_table(root)
    faults += [f"docs/verdicts.md: `{kind}` has no file in dist/diagnosis/kinds" for kind in sorted(table - set(files))]
    faults += [f"{files[kind].relative_to(root)}: `{kind}` has no row in docs/verdicts.md" for kind in sorted(set(files) - table)]
    for path in sorted((root / "dist").rglob("*.cpp")):
        for made in MADE.finditer(path.read_text()):
            kind = made.group(1) or made.group(2)
            if path.parent.name != "kinds":
                faults.append(f"{path.relative_to(root)}: makes a verdict `{kind}`; that belongs to dist/diagnosis/kinds/{kind}.cpp")
            elif files.get(kind) != path:
                faults.append(f"{path.relative_to(root)}: makes a verdict `{kind}` that its first line does not name")
    for fault in faults:
        print(fault)
    print(f"{len(files)} kinds of verdicts in {len(set(files.values()))} files, {len(faults)} wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
