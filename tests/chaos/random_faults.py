#!/usr/bin/env python3
"""Random faults at random ranks, steps and places of a small DDP training; each run is judged.

    tests/chaos/random_faults.py --program BUILD/bin/brigade --rank-program BUILD/bin/chaos_rank [--seed 1] [--count 500] [--jobs 2]

The judge asks of every run: it ended by itself; no process of it lives on, and its folder for temporary files is empty;
brigade run names the faulted rank as the first that failed; the exit status is that of the fault; and a fault that is
none (a pause, a slow rank, a full disk that is reported) leaves the result as it is without. A failing draw prints its
index and output: --only INDEX, with the same seed, repeats it. --without BACKEND/FAULT leaves such draws out.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile

from processes import end_what_is_left, status_of

# What the launcher returns after each fault; None: 0 with the right result, or a failure that names the rank.
STATUS = {"kill": 137, "exit0": "not 0", "exit3": 3, "abort": 134, "throw": 134, "memory": 134, "disk": 134, "stop": "not 0",
          "pause": 0, "slow": 0, "close": None}
# Threads share their process: what ends it has no rank to name.
THREAD_FAULTS = {"kill": -signal.SIGKILL, "exit3": 3, "abort": -signal.SIGABRT, "throw": -signal.SIGABRT, "slow": 0}
PLACES = ["forward", "hook", "collective"]

Draw = collections.namedtuple("Draw", "index backend ranks fault rank step place")


def draw(seed: int, index: int) -> Draw:
    """The draw of this number: it does not depend on how many there are, or on what is left out."""
    numbers = random.Random(f"{seed}/{index}")
    backend = numbers.choice(["shm", "gloo", "hosts", "threads"])
    ranks = numbers.randint(2, 5)
    fault = numbers.choice(sorted(THREAD_FAULTS if backend == "threads" else STATUS))
    return Draw(index, backend, ranks, fault, numbers.randrange(ranks), numbers.randrange(6), numbers.choice(PLACES))


def job_of(options, one: Draw, report: str) -> list:
    plan = [one.fault, str(one.rank), str(one.step), one.place]
    if one.backend == "threads":
        return [options.rank_program, f"threads:{one.ranks}", *plan]
    return [options.program, "run", "-n", str(one.ranks), "--no-prefix", "--json", report, "--", options.rank_program, one.backend, *plan]


def run(options, one: Draw) -> tuple:
    """(exit status or None for a hang, output, JSON of the launcher or None, what was left over)."""
    with tempfile.TemporaryDirectory(prefix="chaos-", dir=options.scratch) as folder:
        temporary = pathlib.Path(folder, "tmp")
        temporary.mkdir()
        report = pathlib.Path(folder, "report.json")
        mark = f"BRIGADE_CHAOS_RUN={os.path.basename(folder)}"
        environment = dict(os.environ, TMPDIR=str(temporary), OMP_NUM_THREADS="1", BRIGADE_CHAOS_RUN=os.path.basename(folder))
        output = pathlib.Path(folder, "output")
        with output.open("wb") as file:
            job = subprocess.Popen(job_of(options, one, str(report)), stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment)
            status = status_of(job, mark)
        left = [f"process {process}" for process in end_what_is_left(mark)]
        left += [f"file {path.name}" for path in temporary.iterdir()]
        described = json.loads(report.read_text())["results"][0] if report.exists() else None
        return status, output.read_text(errors="replace"), described, left


def result_lines(output: str) -> list:
    return [line for line in output.splitlines() if line.startswith("done ")]


def judge(options, one: Draw, expected: list) -> tuple:
    """(what is wrong, the output)."""
    status, output, report, left = run(options, one)
    wrong = []
    if status is None:
        wrong.append("hang")
    if left:
        wrong.append(f"left over: {', '.join(left)}")
    threads = one.backend == "threads"
    wanted = (THREAD_FAULTS if threads else STATUS)[one.fault]
    if wanted is None:
        wanted = 0 if status == 0 else "not 0"
    if status is not None and (status == 0 if wanted == "not 0" else status != wanted):
        wrong.append(f"exit status {status}, expected {wanted}")
    if wanted == 0 and result_lines(output) != expected:
        wrong.append(f"result {result_lines(output)}, expected {expected}")
    if threads and one.fault == "throw" and f"planted on rank {one.rank}" not in output:
        wrong.append("first: the error is not that of the faulted rank")
    if not threads and wanted != 0 and status is not None:
        first = [rank["rank"] for rank in report["ranks"] if rank["first_failure"]] if report else []
        if first != [one.rank]:
            wrong.append(f"first: names {first}, expected [{one.rank}]")
    return wrong, output


def references(options) -> dict:
    """The result of each number of ranks without a fault, which is the same on every backend."""
    found = {}
    for ranks in range(2, 6):
        status, output, _, left = run(options, Draw(-1, "shm", ranks, "none", 0, 0, "forward"))
        if status != 0 or left or len(result_lines(output)) != 1:
            sys.exit(f"{ranks} ranks without a fault: status {status}, left {left}\n{output}")
        found[ranks] = result_lines(output)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the program brigade")
    parser.add_argument("--rank-program", required=True, help="the program chaos_rank of the tests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, help="this draw alone, with its output")
    parser.add_argument("--without", action="append", default=[], metavar="BACKEND/FAULT", help="such draws are left out, and counted")
    options = parser.parse_args()
    options.show = options.only is not None
    draws = [draw(options.seed, index) for index in ([options.only] if options.show else range(options.count))]
    left_out = [one for one in draws if f"{one.backend}/{one.fault}" in options.without]
    draws = [one for one in draws if one not in left_out]
    kinds, backends, bad = collections.Counter(), collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory(prefix="chaos-") as options.scratch:
        expected = references(options)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for one, (wrong, output) in zip(draws, pool.map(lambda one: judge(options, one, expected[one.ranks]), draws)):
                kinds[one.fault] += 1
                backends[one.backend] += 1
                bad.update(f"{one.backend}/{one.fault}/{re.split('[: ]', what)[0]}" for what in wrong)
                if wrong:
                    print(f"FAILED seed {options.seed} draw {one.index}: {one.fault} on rank {one.rank} of {one.ranks} "
                          f"({one.backend}), step {one.step}, {one.place}: {'; '.join(wrong)}\n{output[-4000:]}", flush=True)
    print(f"seed {options.seed}: {len(draws)} draws")
    if left_out:
        print(f"left out: {len(left_out)} of {', '.join(options.without)}")
    print("backends:", dict(sorted(backends.items())))
    print("faults:", dict(sorted(kinds.items())))
    print("failed:", dict(sorted(bad.items())) or "none")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
