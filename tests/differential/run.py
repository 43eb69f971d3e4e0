#!/usr/bin/env python3
"""Random programs in Brigade and in PyTorch, compared.

    pip install torch numpy
    tests/differential/run.py --seed 1 --count 1000

Prints each difference with a program as short as it gets, but for those that accepted.json argues for; these are counted by their
reason. Exit code 1 when anything else differs."""
import argparse
import collections
import json
import pathlib
import sys
import time

import torch

import compare
import dialects
import generator
import shrink
import torch_side
from accepted import Accepted
from ours import Ours

HERE = pathlib.Path(__file__).resolve().parent


def batches(arguments):
    """Lists of (program, PyTorch's result)."""
    if arguments.programs:
        programs = [json.loads(line) for line in open(arguments.programs)]
        yield [(p, torch_side.run(p)) for p in programs]
        return
    for start in range(arguments.first, arguments.first + arguments.count, arguments.batch):
        end = min(start + arguments.batch, arguments.first + arguments.count)
        yield [generator.generate(arguments.seed, number) for number in range(start, end)]


def crash(program, result):
    found = compare.Difference("crash", "end", "", result["crash"])
    found.op = "end"
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="1", help="any word")
    parser.add_argument("--count", type=int, default=1000, help="of programs")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--programs", help="take the programs of this file, a line of JSON each, instead")
    parser.add_argument("--program", default=HERE.parent.parent / "build/cpu/bin/differential", type=pathlib.Path)
    parser.add_argument("--accepted", default=HERE / "accepted.json", type=pathlib.Path, help="the differences that are argued for")
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--most", type=int, default=20, help="stop after this many differences")
    parser.add_argument("--save", help="append the short programs to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    ours = Ours(arguments.program)
    accepted = Accepted(arguments.accepted, ours)
    reasons, differing, count, lines, started = collections.Counter(), [], 0, 0, time.time()
    for batch in batches(arguments):
        results = ours.run([program for program, _ in batch])
        for (program, theirs), result in zip(batch, results):
            count += 1
            lines += len(program["lines"])
            if "crash" in result:
                report(program, crash(program, result), arguments, differing)
                continue
            if compare.difference(program, theirs, result) is None:
                continue
            found = shrink.located(program, ours)
            if found is None:
                found = compare.Difference("not repeatable", "end", "", "")
                found.op = "end"
            name = accepted.find(found)
            if name is None:
                shorter, found = shrink.shrink(program, found, ours) if found.kind != "not repeatable" else (program, found)
                name = accepted.find(found, shorter)
                if name is None:
                    report(shorter, found, arguments, differing)
            if name:
                reasons[name] += 1
        if len(differing) >= arguments.most:
            break
    print(f"{count} programs of seed {arguments.seed} with {lines} lines in {time.time() - started:.0f} s: {len(differing)} differ, "
          f"{sum(reasons.values())} differ as accepted.json says")
    for name, number in reasons.most_common():
        print(f"  {number:6} {name}")
    return 1 if differing else 0


def report(program, found, arguments, differing):
    differing.append(found)
    print(f"program {program['id']}: {found}\n{dialects.both(program)}", flush=True)
    if arguments.save:
        with open(arguments.save, "a") as file:
            file.write(json.dumps(program) + "\n")


if __name__ == "__main__":
    sys.exit(main())
