"""What a planted fault sees of the harness, inside one rank.

A row is a function step(rank, world, job). It builds its model, wraps it with job.wrap(), loops over job.iterations() and steps its
optimizers through job.step(), so that the harness knows in which iteration an error came and whether the optimizer had stepped before it.
"""
import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

ALL = "all"
ROWS = {}  # id -> Row, filled by @row when a family is imported
SKIPPED = {}  # id -> reason


class Row:
    def __init__(self, id, function, **options):
        self.id = id
        self.function = function
        self.title = function.__name__.replace("_", " ")
        self.module = function.__module__
        self.world = 2
        self.ranks = ALL  # the ranks that commit the fault
        self.names = ()  # parameter names that a good report contains; "re:..." for another object
        self.cause = None  # regular expression: the cause class, as a report would word it
        self.iteration = 1  # the iteration in which the fault happens; 0 is the construction of the wrapper
        self.control = False  # nothing may be reported
        self.must_work = False  # a good engine just does it: an error is a false report
        self.step_is_right = False  # a step before the report is none of the fault
        self.slow_only = False  # the result is right, only time or memory is lost
        self.warning = None  # regular expression of a warning that counts as a report
        for key, value in options.items():
            if not hasattr(self, key):
                raise TypeError("unknown option of a row: " + key)
            setattr(self, key, value)

    @property
    def legal(self):
        """Whether the program is right as it stands, so that any report is a false one."""
        return self.control or self.must_work


def row(id, **options):
    def register(function):
        if id in ROWS or id in SKIPPED:
            raise ValueError("row defined twice: " + id)
        ROWS[id] = Row(id, function, **options)
        return function

    return register


def control(id, **options):
    return row(id, control=True, **options)


def skip(id, reason):
    SKIPPED[id] = reason


class Planted(Exception):
    """An exception that is the fault itself, not a report on one."""


def tensor_values(value):
    if isinstance(value, torch.Tensor):
        return value.detach().reshape(-1).double().tolist()
    return [float(value)]


class Job:
    def __init__(self, rank, world, folder):
        self.rank, self.world, self.folder = rank, world, folder
        self.iteration = 0
        self.steps = {}  # iteration -> optimizer steps
        self.stderr_at_step = {}  # iteration -> bytes on stderr before its first step
        self.watched = {}  # name -> function that gives the value to compare over ranks at the end
        self.checks = []  # (name, right, got, want)
        self.measures = {}
        self.report_progress()

    # --- for the rows

    def wrap(self, module, prefix="", **options):
        """DistributedDataParallel(module); the parameters are compared over ranks at the end, by name."""
        for name, _ in module.named_parameters():
            self.watch(prefix + name, lambda name=name: dict(module.named_parameters())[name])
        return DistributedDataParallel(module, **options)

    def watch_buffers(self, module):
        for name, buffer in module.named_buffers():
            if buffer.is_floating_point():
                self.watch(name, lambda name=name: dict(module.named_buffers())[name])

    def watch(self, name, find):
        self.watched[name] = find

    def iterations(self, count):
        for self.iteration in range(1, count + 1):
            self.report_progress()
            yield self.iteration

    def step(self, *optimizers):
        for optimizer in optimizers:
            self.note_step()
            optimizer.step()

    def note_step(self):
        if self.iteration not in self.steps:
            self.stderr_at_step[self.iteration] = os.fstat(2).st_size
        self.steps[self.iteration] = self.steps.get(self.iteration, 0) + 1
        self.report_progress()

    def scaled(self, optimizer):
        """The same optimizer; its steps count when it takes them, since a scaler may leave them out."""
        optimizer.register_step_pre_hook(lambda *arguments: self.note_step())
        return optimizer

    def batch(self, rows=8, columns=4):
        """Other data on each rank and in each iteration, the same in each run."""
        generator = torch.Generator().manual_seed(1000 * self.iteration + self.rank + 1)
        return torch.randn(rows, columns, generator=generator)

    def check(self, name, got, want, tolerance=1e-5):
        """The value a right engine would give. A difference makes a silent run a wrong one."""
        got, want = tensor_values(got), tensor_values(want)
        right = len(got) == len(want) and all(abs(g - w) <= tolerance * (1 + abs(w)) for g, w in zip(got, want))
        self.checks.append((name, right, got[:4], want[:4]))

    def measure(self, name, value):
        self.measures[name] = value

    def mean_over_ranks(self, tensor):
        tensor = tensor.detach().clone()
        dist.all_reduce(tensor)
        return tensor / self.world

    # --- for the harness

    def report_progress(self):
        path = os.path.join(self.folder, "progress%d" % self.rank)
        with open(path + ".new", "w") as file:
            json.dump({"iteration": self.iteration, "steps": self.steps, "stderr_at_step": self.stderr_at_step}, file)
        os.replace(path + ".new", path)

    def state(self):
        values = {}
        for name, find in self.watched.items():
            try:
                values[name] = tensor_values(find())
            except KeyError:
                values[name] = None
        return values
