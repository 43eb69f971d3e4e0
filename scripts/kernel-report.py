#!/usr/bin/env python3
"""docs/reference/kernels.md: what the compiler makes of the CUDA kernels. Registers, spills, shared memory (ptxas), and how wide
the memory accesses are (PTX). Needs nvcc, no GPU.

    scripts/kernel-report.py > docs/reference/kernels.md
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent.parent


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(" ".join(map(str, command)) + "\n" + done.stderr)
    return done.stdout + done.stderr


def plain_name(mangled):
    """The identifier that ends in _kernel; in a mangled name each identifier stands behind its length."""
    for digits in re.finditer(r"\d+", mangled):
        for k in range(1, 3):
            length = int(digits.group()[-k:])
            name = mangled[digits.end():digits.end() + length]
            if name.endswith("_kernel") and re.fullmatch(r"[a-z]\w*", name):
                return name
    return mangled


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--include", default=str(HERE / "build/cpu/include"), help="folder with the links brigade/<folder>")
    parser.add_argument("--spills", action="store_true", help="name the instances that spill, on standard error")
    given = parser.parse_args()
    base = ["nvcc", "-std=c++20", "--expt-relaxed-constexpr", f"-arch={given.arch}", f"-I{given.include}"]
    version = re.search(r"release ([\d.]+)", run(["nvcc", "--version"])).group(1)
    print("# The CUDA kernels, as compiled\n")
    print(f"Made by `scripts/kernel-report.py` with nvcc {version} for {given.arch}: one row per kernel template, over all its instances. Widest")
    print("access: the largest load or store of global memory in any instance, in bytes.\n")
    print("| file | kernel | instances | registers | spilled bytes | shared memory | widest access |\n|---|---|---|---|---|---|---|")
    for source in sorted((HERE / "kernels/cuda").glob("*.cu")):
        with tempfile.TemporaryDirectory() as folder:
            ptx = pathlib.Path(folder) / "kernel.ptx"
            run(base + ["-ptx", str(source), "-o", str(ptx)])
            text = ptx.read_text()
            report = run(["ptxas", "-v", f"-arch={given.arch}", str(ptx), "-o", str(ptx) + ".cubin"])
        widest = collections.defaultdict(int)
        bits = {"8": 1, "16": 2, "32": 4, "64": 8}
        for entry in re.split(r"\n(?=\.visible \.entry |\.entry |\.weak \.entry )", text)[1:]:
            name = plain_name(re.search(r"\.entry (\w+)", entry).group(1))
            for vector, size in re.findall(r"\b(?:ld|st)\.global(?:\.\w+)*?(?:\.v([24]))?\.[a-z](\d+)\b", entry):
                widest[name] = max(widest[name], int(vector or 1) * bits.get(size, 0))
        rows = collections.defaultdict(list)
        for block in re.split(r"ptxas info\s+: Compiling entry function ", report)[1:]:
            registers = re.search(r"Used (\d+) registers", block)
            spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", block)
            shared = re.search(r"(\d+) bytes smem", block)
            rows[plain_name(block.split("'")[1])].append(
                (int(registers.group(1)), int(spills.group(1)) + int(spills.group(2)), int(shared.group(1)) if shared else 0))
            if rows[plain_name(block.split("'")[1])][-1][1] > 0 and given.spills:
                print(block.split("'")[1], file=sys.stderr)
        for name, values in sorted(rows.items()):
            low, high = min(v[0] for v in values), max(v[0] for v in values)
            print(f"| {source.name} | {name} | {len(values)} | {low} to {high} | {max(v[1] for v in values)} | "
                  f"{max(v[2] for v in values)} | {widest[name]} |")


if __name__ == "__main__":
    main()
