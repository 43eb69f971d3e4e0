#!/usr/bin/env python3
"""Asks Perfetto's own trace processor what it sees in traces: every slice has to be under its rank, in its lane, at its time.

    tests/perfetto/traces.py --program build/cpu/bin/brigade --test-dist build/cpu/bin/test_dist --perfetto build/cpu/perfetto

The traces are those of `brigade explain digits` on 1, 2 and 4 ranks, and those of made-up timelines that tests/dist/trace_test.cpp writes (devices,
clocks that disagree, collectives that overlap). Exit status 77: Perfetto is not installed.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
QUERIES = [
    # A slice is on a thread's track or on a process's.
    "select coalesce(p.name, q.name), coalesce(t.name, track.name), s.name, s.ts, s.dur, extract_arg(s.arg_set_id, 'args.iteration') from slice s"
    " join track on track.id = s.track_id left join thread_track on thread_track.id = track.id left join thread t on t.utid = thread_track.utid left join process p on p.upid = t.upid"
    " left join process_track on process_track.id = track.id left join process q on q.upid = process_track.upid",
    "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
]


def ask(perfetto, traces):
    """The answers to QUERIES for each trace."""
    run = subprocess.run(["node", HERE / "processor.cjs", perfetto, *traces], input="\n".join(QUERIES), capture_output=True, text=True, timeout=200)
    if run.returncode != 0:
        sys.exit(f"the trace processor failed (status {run.returncode}): {run.stderr}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def expected_slices(trace):
    """(rank, lane, name) -> [(begin, length, iteration)] in nanoseconds, as the events say."""
    names = {(event["pid"], event.get("tid")): event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"}
    open_slices, slices = collections.defaultdict(list), collections.defaultdict(list)
    for event in trace["traceEvents"]:
        rank = f"rank {event['pid']}"
        if event["ph"] == "M":
            continue
        if event["ph"] == "i":
            slices[rank, names[event["pid"], event["tid"]], event["name"]].append((event["ts"] * 1000, 0, event["args"]["iteration"]))
            continue
        asynchronous = event["ph"] in "be"
        stack = open_slices[rank, asynchronous, event["id2"]["local"] if asynchronous else event["tid"]]
        if event["ph"] in "Bb":
            # The lane of a bucket has the name of what begins there first.
            lane = (stack[0][0]["name"] if stack else event["name"]) if asynchronous else names[event["pid"], event["tid"]]
            stack.append((event, lane))
        else:
            begin, lane = stack.pop()
            slices[rank, lane, begin["name"]].append((begin["ts"] * 1000, (event["ts"] - begin["ts"]) * 1000, begin["args"]["iteration"]))
    assert not any(open_slices.values()), "events that do not end"
    return slices


def differences(trace, rows, errors):
    """What Perfetto sees otherwise, in words."""
    expected, seen = expected_slices(trace), collections.defaultdict(list)
    for rank, lane, name, begin, length, iteration in rows:
        seen[rank, lane, name].append((begin, length, iteration))
    found = [f"{name}: {value}" for name, value in errors]
    for key in sorted(expected.keys() | seen.keys(), key=str):
        ours, theirs = sorted(expected.get(key, [])), sorted(seen.get(key, []))
        # The processor cuts off what is below a nanosecond.
        same = len(ours) == len(theirs) and all(abs(a[0] - b[0]) <= 1.5 and abs(a[1] - b[1]) <= 1.5 and a[2] == b[2] for a, b in zip(ours, theirs))
        if not same:
            found.append(f"{key}: expected {len(ours)} slices {ours[:2]}, Perfetto has {len(theirs)} {theirs[:2]}")
    return found


def write_traces(folder, program, test_dist):
    for ranks in (1, 2, 4):
        command = [program, "explain", "digits", "--ranks", str(ranks), "--backend", "shm", "--trace", folder / f"ranks-{ranks}.json"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)
    environment = dict(os.environ, BRIGADE_MADE_UP_TRACES=str(folder))
    subprocess.run([test_dist, "--source-file=*/trace_test.cpp"], check=True, stdout=subprocess.DEVNULL, env=environment, timeout=60)


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "test-dist", "perfetto"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    missing = None if os.path.exists(f"{given.perfetto}/engine_bundle.js") else given.perfetto
    if missing or not shutil.which("node"):
        print(f"SKIPPED: {missing or 'node'} is not there, so NOBODY HAS ASKED PERFETTO about the traces; scripts/install-perfetto.sh {given.perfetto} installs it")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        write_traces(pathlib.Path(folder), given.program, given.test_dist)
        files = sorted(pathlib.Path(folder).glob("*.json"))
        assert len(files) >= 8, f"too few traces: {files}"
        failed, total = 0, 0
        for file, (rows, errors) in zip(files, ask(given.perfetto, files), strict=True):
            found = differences(json.loads(file.read_text()), rows, errors)
            total += len(rows)
            failed += bool(found)
            print(f"{'FAILED' if found else 'good'}: {file.name}: {len(rows)} slices of {len({row[0] for row in rows})} ranks", *found[:20], sep="\n  ")
    print(f"{total} slices in {len(files)} traces; {failed} traces are seen otherwise by Perfetto")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
