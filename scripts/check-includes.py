#!/usr/bin/env python3
"""Checks the direction of includes: a folder uses only what stands below it, and includes are written <brigade/folder/file.h>."""
import pathlib
import re
import subprocess
import sys

# Bottom to top. A folder may include itself and all folders before it.
ORDER = ["core", "kernels", "autograd", "nn", "optim", "amp", "data", "dist", "lab"]
# The same for the rooms inside a folder.
ROOMS = {"dist": ["errors", "rendezvous", "groups", "comm_hooks", "buckets", "reducer", "timeline", "diagnosis", "observers", "checks", "ddp", "fabric"]}
# Free to include anything.
TOP = {"tests", "bench", "evidence", "examples"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cpp", "*.cu", "*.cuh"],
                            cwd=root, capture_output=True, text=True)
    if listed.returncode == 0:
        files = [root / line for line in listed.stdout.split()]
    else:  # not a git checkout
        files = [path for folder in ORDER for path in (root / folder).rglob("*") if path.suffix in (".h", ".cpp", ".cu", ".cuh")]
    wrong = 0
    checked = 0
    for path in files:
        relative = path.relative_to(root)
        folder = relative.parts[0]
        if folder not in ORDER or not path.exists():
            if folder not in ORDER and folder not in TOP and len(relative.parts) > 1:
                print(f"{relative}:1: unknown folder '{folder}'; add it to ORDER in scripts/check-includes.py")
                wrong += 1
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            checked += 1
            quote, name = match.groups()
            if quote == '"':
                print(f'{relative}:{number}: "{name}" in quotes; write <brigade/...>')
                wrong += 1
            parts = name.split("/")
            if parts[0] == "brigade" and len(parts) > 2 and parts[1] in ORDER and ORDER.index(parts[1]) > ORDER.index(folder):
                print(f"{relative}:{number}: {folder} must not include {parts[1]} ({name}): it stands above")
                wrong += 1
            rooms = ROOMS.get(folder)
            if rooms and len(relative.parts) > 2 and len(parts) > 3 and parts[:2] == ["brigade", folder]:
                room, other = relative.parts[1], parts[2]
                if room in rooms and other in rooms and rooms.index(other) > rooms.index(room):
                    print(f"{relative}:{number}: {folder}/{room} must not include {name}: {folder}/{other} stands above")
                    wrong += 1
        if len(relative.parts) > 2 and folder in ROOMS and relative.parts[1] not in ROOMS[folder]:
            print(f"{relative}:1: unknown room '{folder}/{relative.parts[1]}'; add it to ROOMS in scripts/check-includes.py")
            wrong += 1
    print(f"{checked} includes in {len(files)} files, {wrong} wrong")
    return 1 if wrong or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
