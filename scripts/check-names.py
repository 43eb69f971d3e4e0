#!/usr/bin/env python3
"""Checks that each constant and each type has one definition: a name that two files define in one namespace, outside an
unnamed one, breaks the one-definition rule, and the linker takes either without a word. And that each file of tests has a
namespace of its own, so that several can be compiled together."""
import collections
import pathlib
import re
import subprocess
import sys

OPEN = re.compile(r"^namespace( [\w:]+)? \{$")
CLOSE = re.compile(r"^\}  // namespace( [\w:]+)?$")
CONSTANT = re.compile(r"^(?:inline |static |BRIGADE_\w+ )*(?:inline|constexpr)\b[^(={]*?\b(\w+)(?:\[[^\]]*\])? ?(?:=|\{)")
TYPE = re.compile(r"^(?:struct|class|union|enum class|enum) (\w+)(?: final)?(?: :[^:;]*)?(?: \{.*)?$")


def definitions(text: str):
    """(namespace, name, line) of what stands at the left margin; the formatter indents nothing in a namespace."""
    inside = []
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        opened, closed = OPEN.match(line), CLOSE.match(line)
        if opened:
            inside.append((opened.group(1) or "").strip())
        elif closed and inside:
            inside.pop()
        elif inside and "" not in inside:
            constant, made = CONSTANT.match(line), TYPE.match(line)
            only_declared = line.endswith(";") and "{" not in line
            if made and (only_declared or before == "template <>"):
                made = None
            if constant or made:
                yield "::".join(inside), (constant or made).group(1), number
        before = line


def without_own_namespace(files, root):
    """Files *_test.cpp and *_cases.cpp of what tests/CMakeLists.txt compiles together, without `namespace brigade::test::NAME {`."""
    for name in files:
        path = pathlib.PurePosixPath(name)
        batched = re.match(r"tests/(core|kernels|autograd|nn|optim|amp|data|dist|lab|cuda)/", name)
        if batched and re.search(r"_(test|cases)\.cpp$", name):
            wanted = f"namespace brigade::test::{path.stem} {{"
            if wanted not in (root / name).read_text().splitlines():
                yield name, wanted


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cpp", "*.cu", "*.cuh"],
                            cwd=root, capture_output=True, text=True)
    if listed.returncode == 0:
        names = listed.stdout.split()
    else:  # not a git checkout
        names = [str(path.relative_to(root)) for path in sorted(root.rglob("*")) if path.suffix in (".h", ".cpp", ".cu", ".cuh")]
    # A program of bench/ or examples/ is linked with no other; tests/ of one folder are one program.
    files = [name for name in names if not name.startswith(("bench/", "examples/", "build/")) and (root / name).exists()]
    seen = collections.defaultdict(set)
    count = 0
    for name in files:
        for namespace, defined, line in definitions((root / name).read_text()):
            seen[namespace, defined].add((name, line))
            count += 1
    wrong = 0
    for (namespace, defined), places in sorted(seen.items()):
        if len({name for name, _ in places}) > 1:
            wrong += 1
            print(f"{namespace}::{defined} is defined in " + " and in ".join(f"{name}:{line}" for name, line in sorted(places)))
    for name, wanted in without_own_namespace(files, root):
        wrong += 1
        print(f"{name}: all of it stands in a namespace of its own, since several files are compiled together: {wanted}")
    print(f"{count} constants and types in {len(files)} files, {wrong} wrong")
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
