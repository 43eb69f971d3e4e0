#!/usr/bin/env python3
"""Checks that every kernel has a column for every device: each row that a header of kernels/ declares (`extern Kernel<...> name;`) is defined once with its CPU function,
and once given a CUDA function by an `AddKernel`."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DECLARED = re.compile(r"\bextern\s+Kernel<[^;]*>\s*(\w+)\s*;")
DEFINED = re.compile(r"\bKernel<[^;]*?>\s*(\w+)\(\s*\"\w+\"\s*,\s*&\w+\s*\)")
ADDED = re.compile(r"\bAddKernel\s+\w+\(\s*(\w+)\s*,\s*kCUDA\s*,\s*&\w+\s*\)")


def code(path):
    """The text without comments."""
    return re.sub(r"//[^\n]*", "", path.read_text())


def sources(folder, *suffixes):
    return [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in suffixes]


def main() -> int:
    rows = {}
    for path in sources("kernels", ".h"):
        for name in DECLARED.findall(code(path)):
            rows[name] = path.relative_to(ROOT)
    defined, added = collections.Counter(), collections.Counter()
    for path in sources("kernels/cpu", ".cpp"):
        for name in DEFINED.findall(code(path)):
            defined[name] += 1
    for path in sources("kernels/cuda", ".cu", ".cpp"):
        for name in ADDED.findall(code(path)):
            added[name] += 1
    wrong = []
    for name, path in sorted(rows.items()):
        for count, what in ((defined[name], "rows with a CPU function in kernels/cpu"), (added[name], "CUDA functions in kernels/cuda")):
            if count != 1:
                wrong.append(f"{path}: the kernel {name} has {count} {what}, not 1")
    for name in sorted((set(defined) | set(added)) - set(rows)):
        wrong.append(f"the kernel {name} is declared in no header of kernels/")
    for line in wrong:
        print(line)
    print(f"{len(rows)} kernels, {sum(1 for name in rows if added[name])} of them for CUDA devices, {len(wrong)} wrong")
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
