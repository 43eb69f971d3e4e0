#!/usr/bin/env python3
"""Runs the planted faults of the catalogue on PyTorch's DistributedDataParallel and scores what it reports.

    python3 run.py                          # every row at OFF, INFO and DETAIL
    python3 run.py UNU-12 COL-06 --verbose  # two rows, with the texts of every rank
    python3 run.py --json results.json --markdown ../../docs/reference/faults-torch.md

Needs PyTorch, nothing else. The rules of the scores are in README.md.
"""
import argparse
import datetime
import json
import os
import shutil
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402

import excerpt  # noqa: E402
import harness  # noqa: E402
import job  # noqa: E402
import score  # noqa: E402
import table  # noqa: E402

FAMILIES = ["unu", "twi", "div", "scl", "col", "buf_perf", "amp", "ok"]
LEVELS = ["OFF", "INFO", "DETAIL"]


def show(run, result):
    print("\n== %s %s: %s, ranks equal: %s (largest difference %g, %s), wrong: %s" % (
        run["id"], run["level"], table.cell(result), result["ranks_equal"], result["difference"],
        ", ".join(result["differs"]) or "none", ", ".join(result["wrong"]) or "none"))
    print("   points %s, excerpt: %s" % (result["points"], excerpt.of_ranks(result["texts"])))
    for rank in run["ranks"]:
        print("-- rank %d: status %d%s, iteration %d, steps %s %s" % (
            rank["rank"], rank["status"], ", hung" if rank["hung"] else "", rank["iteration"], rank["steps"],
            rank.get("measures") or ""))
        for text in (rank["setup_error"], rank["error"], rank.get("state_error"), rank["stderr"]):
            if text:
                print("   | " + score.without_stack(text).replace("\n", "\n   | ")[:3000])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ID", help="rows or families (UNU, COL-06); all if none is given")
    parser.add_argument("--levels", default=",".join(LEVELS), help="comma-separated values of TORCH_DISTRIBUTED_DEBUG")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time (default 2; most of the time is waiting)")
    parser.add_argument("--json", metavar="FILE", help="write the cells of the table")
    parser.add_argument("--markdown", metavar="FILE", help="write the table, with excerpts of the messages")
    parser.add_argument("--add", action="store_true", help="to what these two files hold: of rows that are not in them yet")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="date to print in the results")
    parser.add_argument("--list", action="store_true", help="list the rows and stop")
    parser.add_argument("--verbose", action="store_true", help="print the texts of every rank")
    options = parser.parse_args()

    for family in FAMILIES:
        __import__(family)
    rows = [row for row in job.ROWS.values()
            if not options.rows or any(row.id == name or row.id.startswith(name + "-") for name in options.rows)]
    if options.list:
        for row in rows:
            print(row.id, row.title)
        for id, reason in sorted(job.SKIPPED.items()):
            print(id, "not run:", reason)
        return 0
    if not rows:
        parser.error("no such row; see --list")
    unmarked = [row.id for row in rows if not row.legal and not score.fault_lines(row)]
    if unmarked:
        parser.error("no line is marked as the fault of " + ", ".join(unmarked))

    earlier = table.Earlier(options.json, options.markdown) if options.add else table.Earlier()
    known = [row.id for row in rows if row.id in earlier.cells]
    if known:
        parser.error("--add would count twice: " + ", ".join(known))

    levels = options.levels.split(",")
    folder = tempfile.mkdtemp(prefix="faults_torch_")
    start = time.monotonic()

    def progress(run, done, count):
        print("\r%d of %d  %-8s %-6s" % (done, count, run["id"], run["level"]), end="", file=sys.stderr, flush=True)

    try:
        runs = harness.run_all(rows, levels, options.jobs, folder, progress)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(file=sys.stderr)

    results, invalid = {}, []
    for run in runs:
        result = score.score(job.ROWS[run["id"]], run)
        results.setdefault(run["id"], {})[run["level"]] = result
        if result["invalid"]:
            invalid.append(run["id"] + " " + run["level"])
        if options.verbose:
            show(run, result)
    meta = {"version": torch.__version__.split("+")[0], "build": torch.__version__, "date": earlier.date_with(options.date), "backend": "gloo, on a CPU",
            "time_out_s": harness.TIME_OUT, "levels_that_crash_as_shipped": sorted(harness.CRASHING_LEVELS | earlier.crashing)}
    text = table.markdown(rows, results, levels, meta, earlier)
    if options.markdown:
        with open(options.markdown, "w") as file:
            file.write(text)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(dict(meta, summary=earlier.summary_with(table.summary(rows, results, levels)),
                           rows=earlier.cells_with(table.cells(results, levels))), file, indent=1)
            file.write("\n")
    if not options.verbose:
        print(text)
    print("%d runs in %.0f s" % (len(runs), time.monotonic() - start), file=sys.stderr)
    if invalid:
        print("could not be set up: " + ", ".join(invalid), file=sys.stderr)
    return 1 if invalid else 0


if __name__ == "__main__":
    sys.exit(main())
