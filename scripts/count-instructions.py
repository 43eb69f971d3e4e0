#!/usr/bin/env python3
"""Instructions of one operation, and of the wrapper in a training step, counted by callgrind; fails over the limits.

    scripts/count-instructions.py [operations|steps] [--programs FOLDER]

FOLDER holds bench_node_instructions and bench_step_instructions, by default those of build/cpu. They run the loops for any
x86-64 on one thread, so that the counts are those of every processor. An operation's cost is that of one more round of a
chain, so that the first use of memory does not count; releasing the graph is part of forward. A step's cost is that of one
more step of one rank beyond the same step without a wrapper, for each of its 104 parameters. Exit status: 0 within the
limits, 1 over them, 77 without valgrind.
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
# Instructions of a step and parameter that the wrapper adds, without and with diagnosis and checks.
STEP_LIMITS = {"off": 500, "on": 3000}
PARAMETERS = 104
STEPS = (15, 75)
CHAIN = 1000
ROUNDS = 16  # what happens now and then, a table that grows, weighs little
TRIES = 4


# What libraries do as they are loaded differs from run to run.
CALLGRIND = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]


def collected(toggle, command):
    command = CALLGRIND + [f"--toggle-collect={toggle}"] + command
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if platform.machine() == "x86_64":
        environment["BRIGADE_CPU"] = "x86-64"
    done = subprocess.run(command, text=True, capture_output=True, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed ({done.returncode}):\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def of_operation(program, operation, phase):
    """Instructions of one operation."""
    few, many = (collected("main", [program, operation, phase, str(CHAIN), str(rounds)]) for rounds in (2, 2 + ROUNDS))
    return (many - few) / (CHAIN * ROUNDS)


def of_step(program, wrapper):
    """Instructions of one step; the threads of the ranks run train()."""
    few, many = (collected("*train*", [program, wrapper, str(steps)]) for steps in STEPS)
    return (many - few) / (STEPS[1] - STEPS[0])


def is_within(what, unit, limit, count):
    # malloc merges its free memory in some runs: only what stays counts.
    found = count()
    for _ in range(TRIES - 1):
        if found > limit:
            found = min(found, count())
    print(f"{what:<17} {found:8.0f} instructions {unit}, limit {limit}{'  OVER' if found > limit else ''}")
    return found <= limit


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["operations", "steps"], help="default: both")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/cpu/bin")
    given = parser.parse_args()
    if not shutil.which("valgrind"):
        print("valgrind is not installed: no instructions counted")
        return 77
    good = []
    if given.what != "steps":
        program = str(given.programs / "bench_node_instructions")
        for operation, limits in LIMITS.items():
            for phase, limit in zip(("forward", "both"), limits):
                good.append(is_within(f"{operation:<7} {phase}", "an operation", limit,
                                      lambda: of_operation(program, operation, phase)))
    if given.what != "operations":
        program = str(given.programs / "bench_step_instructions")
        alone = of_step(program, "alone")
        for wrapper, limit in STEP_LIMITS.items():
            good.append(is_within(f"diagnosis {wrapper}", "a parameter and step", limit,
                                  lambda: (of_step(program, wrapper) - alone) / PARAMETERS))
    return 0 if all(good) else 1


sys.exit(main())
