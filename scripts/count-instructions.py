#!/usr/bin/env python3
"""Instructions of recording one operation and of running its backward, counted by callgrind; fails over the limits.

    scripts/count-instructions.py [PROGRAM]

PROGRAM is bench_node_instructions, of build/cpu if none is named. It runs the loops for any x86-64 on one thread, so that
the counts are those of every processor. An operation's cost is that of one more round of a chain, so that the first use of
memory does not count; releasing the graph is part of forward. Exit status: 0 within the limits, 1 over them, 77 without
valgrind.
"""
import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Instructions of one operation: forward with release, and both directions; 4 % above what was counted when they were set,
# for other compilers. An eighth of PyTorch 1.13's, counted in the same way: add 1181 and 2711, mul 1271 and 3596.
LIMITS = {"add": (1005, 1600), "mul": (1080, 2340), "relu": (1160, 2210), "matmul": (1865, 4235)}
CHAIN = 1000
ROUNDS = 16  # what happens now and then, a table that grows, weighs little
TRIES = 4


# What libraries do as they are loaded differs from run to run.
CALLGRIND = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=main"]


def collected(program, operation, phase, rounds):
    command = CALLGRIND + [program, operation, phase, str(CHAIN), str(rounds)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if platform.machine() == "x86_64":
        environment["BRIGADE_CPU"] = "x86-64"
    done = subprocess.run(command, text=True, capture_output=True, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed ({done.returncode}):\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def counted(program, operation, phase):
    """Instructions of one operation."""
    return (collected(program, operation, phase, 2 + ROUNDS) - collected(program, operation, phase, 2)) / (CHAIN * ROUNDS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=str(ROOT / "build/cpu/bin/bench_node_instructions"))
    given = parser.parse_args()
    if not shutil.which("valgrind"):
        print("valgrind is not installed: no instructions counted")
        return 77
    bad = False
    for operation, limits in LIMITS.items():
        for phase, limit in zip(("forward", "both"), limits):
            # malloc merges its free memory in some runs, which adds up to eleven instructions an operation: only what stays counts.
            count = counted(given.program, operation, phase)
            for _ in range(TRIES - 1):
                if count > limit:
                    count = min(count, counted(given.program, operation, phase))
            over = count > limit
            bad = bad or over
            print(f"{operation:<7} {phase:<9} {count:8.0f} instructions an operation, limit {limit}{'  OVER' if over else ''}")
    return 1 if bad else 0


sys.exit(main())
