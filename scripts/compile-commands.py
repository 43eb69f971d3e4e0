#!/usr/bin/env python3
"""Compile commands for each source file, for clangd and other tools that look a file up.

    scripts/compile-commands.py build/cpu
    scripts/compile-commands.py --check build/cpu    # fails for a file of the libraries, the lab or their tests that has no command

CMake's own build/cpu/compile_commands.json names the files that it compiles, and small files are compiled together (cmake/BrigadeBatches.cmake). This
writes build/cpu/clangd/compile_commands.json, in which every file of a batch has the command of that batch. Where a file is compiled for more than
one program, all of its commands stand there. Every build runs it; .clangd points to what it writes.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^#include [<"](.+\.(?:cpp|cu))[>"]$', re.M)


def sources_in(batch: pathlib.Path) -> list:
    """The files that a batch puts together."""
    found = []
    for name in INCLUDE.findall(batch.read_text()):
        candidates = [pathlib.Path(name)] if name.startswith("/") else [ROOT / name.removeprefix("brigade/"), ROOT / "tests" / name, ROOT / "tests/cuda" / name]
        source = next((each for each in candidates if each.is_file()), None)
        if source is None:
            sys.exit(f"{batch}: no file is found for '{name}'")
        found.append(source)
    return found


def entries_of(entry: dict) -> list:
    file = pathlib.Path(entry["file"])
    generated = file.parent.name in ("batches", "Unity")
    if not generated or not file.is_file():
        return [entry]
    entries = []
    for source in sources_in(file):
        # What is written has no place of its own: clangd writes nothing.
        command = re.sub(r" -o \S+", "", entry["command"]).replace(str(file), str(source))
        if source.suffix == ".cu":
            command = command.replace(f" -c {source}", f" -x c++ -c {source}")
        entries.append({"directory": entry["directory"], "command": command, "file": str(source)})
    return entries


FOLDERS = ("core", "kernels", "autograd", "nn", "optim", "amp", "data", "dist", "lab")


def without_command(entries: list) -> list:
    known = {entry["file"] for entry in entries}
    sources = [path for folder in FOLDERS for path in [*(ROOT / folder).rglob("*.cpp"), *(ROOT / "tests" / folder).rglob("*.cpp")]]
    assert len(sources) > 500, "the folders have moved"
    return sorted(str(path.relative_to(ROOT)) for path in sources if "cuda" not in path.parts and str(path) not in known)


def main() -> int:
    words = [word for word in sys.argv[1:] if word != "--check"]
    if len(words) != 1:
        sys.exit(__doc__)
    build = pathlib.Path(words[0])
    written = [each for entry in json.loads((build / "compile_commands.json").read_text()) for each in entries_of(entry)]
    target = build / "clangd" / "compile_commands.json"
    target.parent.mkdir(exist_ok=True)
    text = json.dumps(written, indent=1) + "\n"
    if not target.exists() or target.read_text() != text:  # clangd reads it again when it changes
        target.write_text(text)
    missing = without_command(written) if "--check" in sys.argv else []
    for name in missing:
        print(f"{name} has no compile command")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
