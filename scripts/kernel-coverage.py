#!/usr/bin/env python3
"""Whether tests ran every CUDA kernel: all instantiations that a program of the emulation (evidence/simt) holds, beside those that its processes say they ran.

    SIMT_COVERAGE=/tmp/runs build/cpu/bin/test_cuda_emulated; scripts/kernel-coverage.py /tmp/runs build/cpu/bin/test_cuda_emulated

Prints the figures and what no test ran; exits with 1 when there is any, when a __global__ function in kernels/cuda is not named *_kernel, and when one has no
instantiation in the program."""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GROUP = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
DECLARATION = re.compile(rf"__global__\s+(?:void\s+)?(?:__launch_bounds__\s*{GROUP}\s*)?(?:void\s+)?(\w+)\s*\(")


def function_name(demangled):
    """brigade::kernels::x_kernel of `void brigade::kernels::(anonymous namespace)::x_kernel<float>(float const*) `; None for what is no function."""
    text = demangled.replace("(anonymous namespace)::", "")
    plain, depth = "", 0
    for c in text:
        if c in "<(":
            depth += 1
        elif c in ">)":
            depth -= 1
        elif depth == 0:
            plain += c
    return plain.split()[-1] if depth == 0 and plain.split() else None


def instantiations(nm, program):
    """{address: demangled name} of the kernels in the program."""
    listed = subprocess.run([nm, "-C", "--defined-only", str(program)], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in listed.splitlines():
        address, kind, name = line.split(maxsplit=2)
        if kind not in "tTwW" or "[clone" in name:
            continue
        function = function_name(name)
        if function and function.startswith("brigade::kernels::") and function.endswith("_kernel"):
            found[int(address, 16)] = name
    return found


def launches_in(folder, program):
    """{address: launches} over all processes, and how many there were."""
    launches, files = collections.Counter(), 0
    for path in sorted(folder.glob("*.txt")):
        files += 1
        for line in path.read_text().splitlines():
            file, address, count = line.split("\t")
            if pathlib.Path(file).resolve() == program:
                launches[int(address, 16)] += int(count)
    return launches, files


def declarations(folder):
    """[(place, name)] of all __global__ functions; the name is None where it cannot be read."""
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".cu", ".h")):
        text = re.sub(r"//[^\n]*", "", path.read_text())
        for at in re.finditer(r"\b__global__\b", text):
            match = DECLARATION.match(text, at.start())
            line = text.count("\n", 0, at.start()) + 1
            found.append((f"{path.relative_to(ROOT)}:{line}", match and match.group(1)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="what SIMT_COVERAGE named")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--nm", default="nm")
    given = parser.parse_args()
    program = given.program.resolve()

    kernels = instantiations(given.nm, program)
    launches, processes = launches_in(given.folder, program)
    declared = declarations(ROOT / "kernels" / "cuda")
    templates = collections.defaultdict(list)
    for address, name in kernels.items():
        templates[function_name(name).rsplit("::", 1)[-1]].append(address)

    wrong = []
    for place, name in declared:
        if name is None:
            wrong.append(f"{place}: cannot read the name of this __global__ function")
        elif not name.endswith("_kernel"):
            wrong.append(f"{place}: {name} is __global__; its name must end in _kernel")
        elif name not in templates:
            wrong.append(f"{place}: {name} is not in the program: nothing launches it")
    missing = sorted(name for address, name in kernels.items() if launches[address] == 0)
    wrong += [f"no test ran {name}" for name in missing]
    if not kernels:
        wrong.append(f"{program} holds no kernels")

    counted = subprocess.run([str(program), "--count"], capture_output=True, text=True).stdout
    cases = re.search(r"filters: (\d+)", counted)
    for name, addresses in sorted(templates.items()):
        covered = sum(1 for a in addresses if launches[a])
        print(f"{name:32} {covered:4} of {len(addresses):4} instantiations, {sum(launches[a] for a in addresses):7} launches")
    print(f"{len(declared)} kernels, {len(kernels) - len(missing)} of {len(kernels)} instantiations covered, {sum(launches[a] for a in kernels)} launches, "
          f"{processes} processes" + (f", {cases.group(1)} test cases" if cases else ""))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
