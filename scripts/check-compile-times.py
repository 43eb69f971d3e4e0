#!/usr/bin/env python3
"""No file takes a compiler long: reads what scripts/timed-compile.sh wrote while BUILD was built.

    scripts/check-compile-times.py BUILD [--limit SECONDS]

The limit is for batches of BRIGADE_BATCH_FACTOR 1; for those of F times as many files, which share their headers, it is (1 + F) / 2 times as much.
CPU time, which a loaded machine changes little. An object counts as it was compiled last; what a compiler cache answered
was not compiled. The limit is for a machine that compiles a short program of the standard library's templates in
YARDSTICK_SECONDS; on a slower one it grows by as much. Prints how many objects were judged, their sum and the longest; exits
with 1 when one took longer than the limit, and with 77 when none was compiled here.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

YARDSTICK_SECONDS = 2.9  # AMD EPYC (Zen 5), g++ 12
YARDSTICK = """
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
int main(int argc, char** argv) {
  std::map<std::string, std::unordered_map<std::string, int>> seen;
  const std::regex word("([a-z]+)=([0-9]+)");
  for (int i = 1; i < argc; ++i) {
    std::smatch found;
    const std::string text = argv[i];
    if (std::regex_search(text, found, word)) seen[found[1]][found[2]] += 1;
  }
  for (const auto& [name, numbers] : seen) std::cout << name << " " << numbers.size() << std::endl;
}
"""


def slowness(build):
    """How many times as long as there this machine's compiler takes; at least 1."""
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE).group(1)
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "yardstick.cpp"
        source.write_text(YARDSTICK)
        count = os.cpu_count()  # at once, as a build does it
        before = os.times()
        running = [subprocess.Popen([compiler, "-std=c++20", "-O2", "-c", source, "-o", f"{folder}/{i}.o"]) for i in range(count)]
        if any([each.wait() != 0 for each in running]):
            raise SystemExit("the yardstick does not compile")
        after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return max(1.0, spent / count / YARDSTICK_SECONDS)


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
    factor = int(re.search(r"^BRIGADE_BATCH_FACTOR:\w+=(\d+)$", (given.build / "CMakeCache.txt").read_text(), re.MULTILINE).group(1))
    limit = given.limit * slowness(given.build) * (1 + factor) / 2
    slow = [name for name in longest if seconds[name] > limit]
    print(f"the limit here: {limit:.1f}")
    for name in slow:
        print(f"{name} took {seconds[name]:.1f} CPU seconds: compile fewer instances, or split the file")
    return 1 if slow else 0


sys.exit(main())
