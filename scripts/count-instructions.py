#!/usr/bin/env python3
"""Instructions of recording one operation and of running its backward, counted by callgrind; fails over the limits.

    scripts/count-instructions.py [--build FOLDER]

Builds bench_node_instructions by itself, without this machine's instruction set, which valgrind may not know. An
operation's cost is that of one more round of a chain, so that neither the start nor the first use of memory counts;
releasing the graph is part of forward. Exit status: 0 within the limits, 1 over them, 77 without valgrind.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Instructions of one operation: forward with release, and both directions; 4 % above what was counted when they were set,
# for other compilers. An eighth of PyTorch 1.13's, counted in the same way: add 1181 and 2711, mul 1271 and 3596.
LIMITS = {"add": (965, 1540), "mul": (1055, 2275), "relu": (1095, 2110), "matmul": (3150, 7280)}
CHAIN = 1000
ROUNDS = 16  # what happens now and then, a table that grows, weighs little


def run(command, **more):
    done = subprocess.run(command, text=True, capture_output=True, **more)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed ({done.returncode}):\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done


def collected(program, operation, phase, rounds):
    done = run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, operation, phase, str(CHAIN),
                str(rounds)])
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build/callgrind"))
    given = parser.parse_args()
    if not shutil.which("valgrind"):
        print("valgrind is not installed: no instructions counted")
        return 77
    run(["cmake", "-S", ROOT, "-B", given.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBRIGADE_NATIVE=OFF",
         "-DBRIGADE_OPENMP=OFF", "-DBRIGADE_ONEDNN=OFF", "-DBRIGADE_GLOO=OFF", "-DBRIGADE_TESTS=OFF"])
    run(["cmake", "--build", given.build, "--target", "bench_node_instructions"])
    program = str(pathlib.Path(given.build) / "bin/bench_node_instructions")
    bad = False
    for operation, limits in LIMITS.items():
        forward, both = ((collected(program, operation, phase, 2 + ROUNDS) - collected(program, operation, phase, 2)) / (CHAIN * ROUNDS)
                         for phase in ("forward", "both"))
        for phase, count, limit in (("forward", forward, limits[0]), ("both", both, limits[1])):
            over = count > limit
            bad = bad or over
            print(f"{operation:<7} {phase:<9} {count:8.0f} instructions an operation, limit {limit}{'  OVER' if over else ''}")
    return 1 if bad else 0


sys.exit(main())
