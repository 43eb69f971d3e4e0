#!/usr/bin/env python3
"""In no file that is compiled together with others does a name mean what another of them declared for itself.

    scripts/check-batches.py BUILD

Reads BUILD/batches, which CMake has written (cmake/BrigadeBatches.cmake), and the files that stand in each. What one declares in `namespace {` must
not be said by another, unless after `.`, `->` or `::`, since there it would be taken for what the other means (a helper write_file for the
write_file of a header) and nobody would notice. Files of tests each have a namespace of their own (check-names.py) and need no look. Where it fails,
a name has come since CMake ran: run it again.
"""
import argparse
import pathlib
import re
import sys

HARMLESS = re.compile(r"(BRIGADE|NLOHMANN)_[A-Z_]+|const|final|override|noexcept|requires|void|int|double|bool|char|float|auto|decltype|sizeof|static_assert")


def code_of(text: str) -> str:
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"[^"\n]*"', '""', text)


def own_names(text: str, stem: str) -> set:
    names = set(re.findall(r"\n#define +(\w+)", code_of(text)))
    # In a namespace that is called as the file nobody else finds them, unless he opens it too, which then is what it "declares".
    own = re.compile(rf"\nnamespace (brigade::[a-z_:]*::{stem}) \{{\n.*?\n\}}  // namespace \1\n", re.S)
    names.update(own.findall(text))
    code = code_of(own.sub("\n", text))
    lines = re.findall(r"\nstatic ([^\n]*)", code)
    for block in re.findall(r"\nnamespace \{\n(.*?)\n\} *\n", code, re.S):
        lines += re.findall(r"^(?:\[\[[^\n]*?\]\] *)?([A-Za-z_][^\n]*)", block, re.M)
    for line in lines:
        declaration = re.split(r" = |\{| : |;", line)[0]
        if "(" in declaration:
            names.update(re.findall(r"(\w+)\(", declaration))
        elif not declaration.startswith("using "):
            names.update(re.findall(r"([A-Za-z_]\w*)(?:\[\w*\])? *$", declaration))
    return {name for name in names if not HARMLESS.fullmatch(name)}


def words(code: str) -> set:
    opened = re.findall(r"namespace (brigade::[a-z_:]+) \{", code)
    return set(opened) | set(re.findall(r"[A-Za-z_]\w*", re.sub(r"(?:\.|->|::)[A-Za-z_]\w*", " ", code)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    build = parser.parse_args().build
    compiled = set(re.findall(r"batches/(\w+\.cpp)", (build / "compile_commands.json").read_text()))
    wrong, batches, files = [], 0, 0
    for batch in sorted((build / "batches").glob("*.cpp")):
        paths = [build / "include" / path for path in re.findall(r"#include <(brigade/[^>]+\.cpp)>", batch.read_text())]
        if len(paths) < 2 or batch.name not in compiled:  # what an earlier layout has left is not compiled
            continue
        batches, files = batches + 1, files + len(paths)
        texts = {path: path.read_text() for path in paths}
        said = {path: words(code_of(text)) for path, text in texts.items()}
        for path, text in texts.items():
            for name in sorted(own_names(text, path.stem)):
                wrong += [f"{batch.name}: {name}, which {path.relative_to(build / 'include')} declares for itself, stands in {other.relative_to(build / 'include')} too"
                          for other in paths if other != path and name in said[other]]
    print(*wrong, f"{files} files in {batches} batches", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
