#!/usr/bin/env python3
"""Lines of autograd/ and kernels/ that the tests run, counted by gcov; fails below --at-least percent.

    make coverage                # builds the preset `coverage` first
    scripts/coverage.py BUILD [--at-least 95] [--folders autograd kernels] [--missing]

Runs the test programs of BUILD, then asks gcov. A line counts once, however many instances of a template it has; it is
covered when any of them has run. The CUDA kernels are those of the emulation.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ["test_core", "test_kernels", "test_autograd", "test_nn", "test_optim", "test_cuda_emulated",
            "test_cuda_training_emulated"]


def run_tests(build):
    for program in PROGRAMS:
        path = build / "bin" / program
        if not path.exists():
            raise SystemExit(f"{path} is missing; build it first (make coverage)")
        print(f"running {program} ...", flush=True)
        done = subprocess.run([path], cwd=build, text=True, capture_output=True, env=os.environ | {"OMP_NUM_THREADS": "2"})
        if done.returncode != 0:
            print(done.stdout[-4000:], done.stderr[-2000:])
            raise SystemExit(f"{program} failed")


def lines_of(build, folders):
    """path -> line -> times it ran"""
    counts = collections.defaultdict(lambda: collections.defaultdict(int))
    notes = sorted(str(path) for path in build.rglob("*.gcda"))
    for start in range(0, len(notes), 20):
        output = subprocess.run(["gcov", "--json-format", "--stdout", *notes[start:start + 20]], cwd=build, text=True,
                                capture_output=True, check=True).stdout
        for text in output.splitlines():
            if not text.startswith("{"):
                continue
            data = json.loads(text)
            for file in data["files"]:
                path = pathlib.Path(os.path.normpath(os.path.join(data["current_working_directory"], file["file"]))).resolve()
                if not path.is_relative_to(ROOT):
                    continue
                name = str(path.relative_to(ROOT))
                if name.split("/")[0] not in folders:
                    continue
                for line in file["lines"]:
                    counts[name][line["line_number"]] += line["count"]
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--at-least", type=float, default=95.0)
    parser.add_argument("--folders", nargs="+", default=["autograd", "kernels"])
    parser.add_argument("--missing", action="store_true", help="print the lines that never ran")
    parser.add_argument("--no-run", action="store_true", help="count what earlier runs have left")
    given = parser.parse_args()
    build = given.build.resolve()
    if not given.no_run:
        for old in build.rglob("*.gcda"):
            old.unlink()
        run_tests(build)
    counts = lines_of(build, given.folders)
    totals = collections.defaultdict(lambda: [0, 0])
    print(f"{'file':<52} {'lines':>6} {'run':>6} {'percent':>8}")
    for name in sorted(counts):
        lines = counts[name]
        run = sum(count > 0 for count in lines.values())
        folder = "kernels/cuda" if name.startswith("kernels/cuda") else name.split("/")[0]
        for key in (folder, "all"):
            totals[key][0] += len(lines)
            totals[key][1] += run
        if run < len(lines):
            print(f"{name:<52} {len(lines):>6} {run:>6} {100 * run / len(lines):>8.1f}")
        if given.missing:
            for line in sorted(line for line, count in lines.items() if count == 0):
                print(f"    {name}:{line}")
    failed = False
    for key, (lines, run) in sorted(totals.items()):
        percent = 100 * run / lines
        failed = failed or percent < given.at_least
        print(f"{key + ' (emulated)' if key.endswith('cuda') else key:<52} {lines:>6} {run:>6} {percent:>8.1f}")
    if not totals:
        raise SystemExit("gcov counted nothing; was the build made with --coverage?")
    print(f"lines of {' and '.join(given.folders)} run by tests: {100 * totals['all'][1] / totals['all'][0]:.1f} %")
    return 1 if failed else 0


sys.exit(main())
