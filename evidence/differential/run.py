#!/usr/bin/env python3
"""Random programs in Brigade and in PyTorch, compared.

    pip install torch numpy
    evidence/differential/run.py --seed 1 --count 1000

Prints each difference with a program as short as it gets, but for those that accepted.json argues for; these are counted by their
reason. Exit code 1 when anything else differs."""
import argparse
import collections
import json
import os
import pathlib
import pickle
import sys
import time

import torch

import compare
import dialects
import generator
import shrink
import torch_side
from accepted import Accepted
from accepted_checks import CHECKS
from ours import Ours

HERE = pathlib.Path(__file__).resolve().parent


class Outcome:
    """What a batch of programs came to."""

    def __init__(self):
        self.count, self.lines, self.reasons, self.reports, self.short = 0, 0, collections.Counter(), [], []

    def add(self, other):
        self.count += other.count
        self.lines += other.lines
        self.reasons += other.reasons
        self.reports += other.reports
        self.short += other.short

    def report(self, program, found):
        self.reports.append(f"program {program['id']}: {found}\n{dialects.both(program)}")
        self.short.append(program)


def judged(load, ours, accepted):
    """Runs the programs that load() gives, each with PyTorch's result."""
    outcome = Outcome()
    programs = load()
    results = ours.run([program for program, _ in programs])
    for (program, theirs), result in zip(programs, results):
        outcome.count += 1
        outcome.lines += len(program["lines"])
        if compare.difference(program, theirs, result) is None:
            continue
        found = shrink.located(program, ours) if "crash" not in result else compare.difference(program, theirs, result)
        if found is None:
            found = compare.Difference("not repeatable", "end", "", "")
        found.op = shrink.op_of(program, found)
        name = accepted.find(found)
        if name is None:
            shorter, found = shrink.shrink(program, found, ours) if found.kind != "not repeatable" else (program, found)
            name = accepted.find(found, shorter)
            if name is None:
                outcome.report(shorter, found)
        if name:
            outcome.reasons[name, found.op] += 1
    return outcome


def in_child(work):
    """What work() gives, in a process of its own; None when it dies: some programs end PyTorch with a segmentation fault."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(work(), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    status = os.waitpid(pid, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit(1)  # the child has said why
    return pickle.loads(answer) if status == 0 else None


def survived(numbers, load, ours, accepted):
    """The outcome of a batch; a program that ends PyTorch is left out, and told."""
    outcome = in_child(lambda: judged(lambda: [load(n) for n in numbers], ours, accepted))
    if outcome is not None:
        return outcome
    if len(numbers) == 1:
        print(f"program number {numbers[0]} ends PyTorch: left out", flush=True)
        return Outcome()
    half = len(numbers) // 2
    outcome = survived(numbers[:half], load, ours, accepted)
    outcome.add(survived(numbers[half:], load, ours, accepted))
    return outcome


def by_reason(reasons):
    """The accepted differences with the operations that each was seen at, the most frequent first."""
    names = {}
    for (name, op), number in reasons.items():
        names.setdefault(name, collections.Counter())[op] += number
    return sorted(names.items(), key=lambda item: -sum(item[1].values()))


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
    accepted = Accepted(arguments.accepted, ours, CHECKS)
    if arguments.programs:
        given = [json.loads(line) for line in open(arguments.programs)]
        numbers, load = list(range(len(given))), lambda n: (given[n], torch_side.run(given[n]))
    else:
        numbers = list(range(arguments.first, arguments.first + arguments.count))
        load = lambda n: generator.generate(arguments.seed, n)
    total, started = Outcome(), time.time()
    for start in range(0, len(numbers), arguments.batch):
        outcome = survived(numbers[start:start + arguments.batch], load, ours, accepted)
        total.add(outcome)
        for text in outcome.reports:
            print(text, flush=True)
        if arguments.save and outcome.short:
            with open(arguments.save, "a") as file:
                file.writelines(json.dumps(program) + "\n" for program in outcome.short)
        if len(total.reports) >= arguments.most:
            break
    of = arguments.programs or f"seed {arguments.seed}"
    print(f"{total.count} programs of {of} with {total.lines} lines in {time.time() - started:.0f} s: {len(total.reports)} differ, "
          f"{sum(total.reasons.values())} differ as accepted.json says")
    for name, operations in by_reason(total.reasons):
        print(f"  {sum(operations.values()):6} {name}: " + ", ".join(f"{op} {n}" for op, n in operations.most_common()))
    return 1 if total.reports else 0


if __name__ == "__main__":
    sys.exit(main())
