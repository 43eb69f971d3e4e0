#!/usr/bin/env python3
"""Compares the declarations of CUDA that the emulation brings (../include/cuda) with a toolkit's headers.

    compare.py [--compiler c++] INCLUDE_FOLDER_OF_A_TOOLKIT

Finds every name that the emulation's headers declare, writes a program that prints each one's value, type or layout and what the half
types compute, compiles and runs it with either set of headers, and compares what they print. Nothing is listed by hand. Structures that
the runtime fills in (driver_types.h) have the toolkit's members, not its layout.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent / "include"
# Headers whose types lie in memory that kernels share with the host.
LAYOUT = {"vector_types.h", "cuda_fp16.h", "cuda_bf16.h"}
# Headers whose functions half_values.h calls.
VALUES = {"cuda_fp16.h", "cuda_bf16.h"}
# What an older toolkit declares otherwise; the sources call it in a way that both accept.
CHANGED_IN_13 = {"cudaStreamGetCaptureInfo"}


def compile_flags(folders):
    return ["-std=c++20", "-w", "-fmax-errors=3"] + [flag for folder in folders for flag in ("-I", str(folder))]


def preprocessed(compiler, header):
    """The header's own lines after preprocessing: no comments, no macros, nothing of what it includes."""
    command = [compiler, *compile_flags([INCLUDE, INCLUDE / "cuda"]), "-xc++", "-E", str(header)]
    lines, own = [], False
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        marker = re.match(r'# \d+ "(.*?)"', line)
        if marker:
            own = marker.group(1) == str(header)
        elif own:
            lines.append(line)
    return "\n".join(lines)


def without_bodies(text):
    """The text without what stands in braces."""
    while True:
        shorter = re.sub(r"\{[^{}]*\}", ";", text)
        if shorter == text:
            return text
        text = shorter


def structures(text):
    """(name, body) of each structure that is defined, and the text without them."""
    found, rest, begin = [], "", 0
    for head in re.finditer(r"\bstruct (?:alignas\(\d+\) )?(\w+) \{", text):
        depth, end = 1, head.end()
        while depth > 0:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        found.append((head.group(1), text[head.end():end - 1]))
        rest += text[begin:head.start()]
        begin = end
    return found, rest + text[begin:]


def members(body):
    names = []
    for statement in without_bodies(body).split(";"):
        if statement.strip() and "(" not in statement:
            names += re.findall(r"(\w+)(?:\[\d+\])?\s*(?:,|$)", statement.strip())
    return names


def describe(compiler, header):
    """Statements of C++ that print the header's declarations, and the names of functions that half_values.h must call."""
    text, statements, called, known = preprocessed(compiler, header), [], [], set()
    layout = header.name in LAYOUT
    found, text = structures(text)
    for name, body in found:
        known.add(name)
        if layout:
            statements.append(f"DESCRIBE_LAYOUT({name})")
        for member in members(body):
            statements.append(f"DESCRIBE_MEMBER({name}, {member})")
            if layout:
                statements.append(f"DESCRIBE_OFFSET({name}, {member})")
    for name, body in re.findall(r"\benum (\w+) \{(.*?)\}", text, re.DOTALL):
        known.add(name)
        for enumerator in re.findall(r"(\w+)\s*=", body):
            known.add(enumerator)
            statements.append(f"DESCRIBE_ENUMERATOR({enumerator})")
    for name, structure in re.findall(r"\busing (\w+) = (?:struct (\w+))?", text):
        known |= {name, structure}
        statements.append(f"DESCRIBE_{'LAYOUT' if layout else 'ALIAS'}({name})")
    for name in re.findall(r"\bconstexpr int (\w+) =", text):
        known.add(name)
        statements.append(f"DESCRIBE_CONSTANT({name})")
    for name in re.findall(r"^#define (cuda\w+)", header.read_text(), re.MULTILINE):
        known.add(name)
        statements.append(f"DESCRIBE_HANDLE({name})")
    for name in re.findall(r"[\w*&] (\w+)\([^;{]*\)\s*[;{]", text.replace('extern "C" {', "")):
        known.add(name)
        if header.name in VALUES:
            called.append(name)
        else:
            statements.append(f"DESCRIBE_FUNCTION({name})")
    missed = {name for name in re.findall(r"\b(?:cuda[A-Z]\w*|make_\w+|__\w*(?:half|bfloat)\w*)\b", text)} - known
    return statements, called, missed, known


def output(compiler, folders, program, scratch, name):
    executable = scratch / name
    command = [compiler, *compile_flags([HERE, *folders]), "-O1", str(program), "-o", str(executable)]
    if subprocess.run(command).returncode != 0:
        sys.exit(f"does not compile with {', '.join(map(str, folders))}: a name is not declared there, or as something else")
    return subprocess.run([str(executable)], check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("toolkit", type=pathlib.Path)
    options = parser.parse_args()

    statements, called, missed, known = [], [], set(), set()
    for header in sorted((INCLUDE / "cuda").glob("*.h")):
        of_header = describe(options.compiler, header)
        statements += of_header[0]
        called += of_header[1]
        missed |= of_header[2]
        known |= of_header[3]
    missed -= known
    uncalled = [name for name in called if not re.search(rf"\b{name}\b", (HERE / "half_values.h").read_text())]
    if missed or uncalled:
        sys.exit(f"declared but not compared: {' '.join(sorted(missed) + uncalled)}")

    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        program = scratch / "program.cpp"
        body = "".join(f"  {statement};\n" for statement in statements)
        program.write_text('#include "half_values.h"\n\nint main() {\n  std::printf("version %d\\n", CUDART_VERSION);\n' + body +
                           "  describe::all_half_values();\n}\n")
        ours = output(options.compiler, [INCLUDE, INCLUDE / "cuda"], program, scratch, "ours")
        theirs = output(options.compiler, [options.toolkit], program, scratch, "theirs")

    version = int(theirs[0].split()[1])
    excused = CHANGED_IN_13 if version < 13000 else set()
    differences = [(a, b) for a, b in zip(ours[1:], theirs[1:]) if a != b and a.split()[1] not in excused]
    print(f"{len(ours) - 1} lines compared with CUDA {version // 1000}.{version % 1000 // 10} in {options.toolkit}")
    if len(ours) != len(theirs):
        sys.exit(f"the emulation's headers give {len(ours)} lines, the toolkit's {len(theirs)}")
    for a, b in differences:
        print(f"emulation: {a}\n  toolkit: {b}")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
