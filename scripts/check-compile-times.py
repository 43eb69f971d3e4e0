#!/usr/bin/env python3
"""No file takes a compiler long: reads what scripts/timed-compile.sh wrote while BUILD was built.

    scripts/check-compile-times.py BUILD [--limit SECONDS]

CPU time, which a loaded machine changes little. An object counts as it was compiled last; what a compiler cache answered
was not compiled. Prints how many objects were judged, their sum and the longest; exits with 1 when one took longer than the
limit, and with 77 when none was compiled here.
"""
import argparse
import pathlib
import sys


def compiled(build):
    """{object: CPU seconds}, of objects that are there."""
    log = build / "compile-times.log"
    seconds = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        user, system, name = line.split(maxsplit=2)
        if (build / name).exists():
            seconds[name] = float(user) + float(system)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--limit", type=float, default=15)
    given = parser.parse_args()
    seconds = compiled(given.build)
    if not seconds:
        print("nothing was compiled here: all of it came from a compiler cache")
        return 77
    longest = sorted(seconds, key=seconds.get, reverse=True)
    print(f"{len(seconds)} objects compiled in {sum(seconds.values()):.0f} CPU seconds; the longest:")
    for name in longest[:5]:
        print(f"{seconds[name]:7.1f} {name}")
    slow = [name for name in longest if seconds[name] > given.limit]
    for name in slow:
        print(f"{name} took {seconds[name]:.1f} CPU seconds; the limit is {given.limit:g}: compile fewer instances, or split the file")
    return 1 if slow else 0


sys.exit(main())
