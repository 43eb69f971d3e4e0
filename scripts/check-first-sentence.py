#!/usr/bin/env python3
"""Checks that each .cpp and .cu of the libraries opens with a comment that says what it is for, in at least one whole sentence."""
import pathlib
import subprocess
import sys

FOLDERS = ["core", "kernels", "autograd", "nn", "optim", "amp", "data", "dist", "lab"]
SUFFIXES = (".cpp", ".cu")


def fault_of(text: str) -> str:
    comment = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        comment.append(line[2:].strip())
    if not "".join(comment):
        return "opens without a comment; say in one or two lines (// ...) what the file is for"
    if not any(line.endswith((".", ":")) for line in comment):
        return "its first comment is no whole sentence; end it with a full stop"
    return ""


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.cpp", "*.cu"],
                            cwd=root, capture_output=True, text=True)
    if listed.returncode == 0:
        files = [root / line for line in listed.stdout.split()]
    else:  # not a git checkout
        files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*")) if path.suffix in SUFFIXES]
    wrong = 0
    checked = 0
    for path in files:
        relative = path.relative_to(root)
        if relative.parts[0] not in FOLDERS or not path.exists():
            continue
        checked += 1
        if fault := fault_of(path.read_text()):
            print(f"{relative}:1: {fault}")
            wrong += 1
    print(f"{checked} files, {wrong} without a first sentence")
    return 1 if wrong or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
