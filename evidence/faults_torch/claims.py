#!/usr/bin/env python3
"""Measures on PyTorch what `brigade claims` measures where no planted fault decides: lab/claims/measured.cpp, written for its
DistributedDataParallel, on 2 ranks over Gloo.

    python3 claims.py                     # prints what was found
    python3 claims.py --json claims.json  # and keeps it, as tests/lab/claims_test.cpp wants it

The buckets hold one parameter each. Collectives and bytes are those that PyTorch's profiler records of a backward, so the bitmap of
find_unused_parameters is among them.
"""
import argparse
import datetime
import json
import os
import shutil
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

import harness  # noqa: E402
from job import Row  # noqa: E402
from models import Heads, loss_of  # noqa: E402

SMALL_BUCKETS = {"bucket_cap_mb": 1e-6}
BYTES = {"float": 4, "int": 4}  # the profiler's names of dtypes


def backward(ddp, job, uses_second):
    first, second = ddp(job.batch())
    (loss_of(first) + loss_of(second) if uses_second else loss_of(first)).backward()


def wrapped(job, **options):
    """Two steps later: at the second forward the buckets are put in order, and the ranks tell each other that order."""
    return warmed_up(job.wrap(Heads(), **SMALL_BUCKETS, **options), job)


def warmed_up(ddp, job):
    for _ in range(2):
        backward(ddp, job, True)
    ddp.zero_grad()
    return ddp


def sent_by_backward(ddp, job, uses_second):
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
        backward(ddp, job, uses_second)
    ddp.zero_grad()
    sent = [event for event in recorded.events() if event.name.startswith("gloo:")]
    size = sum(BYTES[dtype] * torch.Size(shape).numel() for event in sent
               for shape, dtype in zip(event.input_shapes, event.input_dtypes))
    return "%d collectives, %d B" % (len(sent), size)


def unused_head(rank, world, job):
    ddp = wrapped(job, find_unused_parameters=True)
    without, both = sent_by_backward(ddp, job, False), sent_by_backward(ddp, job, True)
    job.measure("text", "a backward without h2: %s; with it: %s" % (without, both))


def frozen_head(rank, world, job):
    trained = sent_by_backward(wrapped(job), job, True)
    net = Heads()
    net.h2.requires_grad_(False)
    ddp = warmed_up(job.wrap(net, **SMALL_BUCKETS), job)
    job.measure("text", "h2 frozen before wrapping: %s; trained: %s" % (sent_by_backward(ddp, job, True), trained))


def names_without_gradient(rank, world, job):
    ddp = wrapped(job, find_unused_parameters=True)
    backward(ddp, job, rank == 0)
    names = [name for name, parameter in ddp.module.named_parameters() if parameter.grad is None]
    job.measure("text", "rank 1 has not used h2; its names without a gradient: [%s]" % ", ".join(names))


def unused_in_the_logging_data(rank, world, job):
    ddp = wrapped(job, find_unused_parameters=True)
    for _ in range(10):  # the data are taken at the tenth forward
        backward(ddp, job, rank == 0)
    data = ddp._get_ddp_logging_data()
    job.measure("text", "has no explain(); _get_ddp_logging_data() on rank 1: unused_parameter_size %d in iteration %d" % (
        data["unused_parameter_size"], data["iteration"]))


def buckets_that_left(rank, world, job):
    ddp = job.wrap(Heads(), **SMALL_BUCKETS)
    times = []  # "bucket", or "gradient" when that of the trunk, the last, has been computed
    ddp.module.t.weight.register_hook(lambda gradient: times.append("gradient"))

    def hook(group, bucket):
        times.append("bucket")
        return allreduce_hook(group, bucket)

    ddp.register_comm_hook(None, hook)
    warmed_up(ddp, job)
    times.clear()
    backward(ddp, job, True)
    job.measure("text", "%d of %d buckets left before backward had computed the last gradient, %d before it returned" % (
        times.index("gradient"), times.count("bucket"), times.count("bucket")))


def gradients_before_step(rank, world, job):
    ddp = wrapped(job)
    backward(ddp, job, True)
    own = torch.cat([parameter.grad.flatten() for parameter in ddp.parameters()])
    all_ranks = [torch.empty_like(own) for _ in range(world)]
    dist.all_gather(all_ranks, own)
    equal = all(torch.equal(own.view(torch.int32), other.view(torch.int32)) for other in all_ranks)
    job.measure("text", "behind backward(), before any step, gradients are %s on the ranks" % (
        "equal to the bit" if equal else "NOT equal"))


# (row of docs/reference/known-failures.md, name of the trial in lab/claims/claim.cpp): what measures it, and the rank that tells.
TRIALS = {
    ("001.3", "bytes"): (unused_head, 0), ("001.3", "frozen"): (frozen_head, 0),
    ("001.5", "names"): (names_without_gradient, 1), ("001.5", "explain"): (unused_in_the_logging_data, 1),
    ("002.5", "bytes"): (unused_head, 0), ("002.5", "frozen"): (frozen_head, 0),
    ("004.6", "timeline"): (buckets_that_left, 0), ("004.6", "gradients"): (gradients_before_step, 0),
}


def measured():
    rows = [Row("%s %s" % key, function) for key, (function, _) in TRIALS.items()]
    folder = tempfile.mkdtemp(prefix="claims_torch_")
    try:
        runs = harness.run_all(rows, ["OFF"], 1, folder, lambda *arguments: None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = {}
    for run in runs:
        row, name = run["id"].split()
        for rank in run["ranks"]:
            if rank["error"] or rank["setup_error"] or rank["hung"]:
                sys.exit("%s, rank %d: %s" % (run["id"], rank["rank"], rank["error"] or rank["setup_error"] or "no end"))
        teller = TRIALS[row, name][1]
        found.setdefault(row, {})[name] = run["ranks"][teller]["measures"]["text"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="file for what was found")
    arguments = parser.parse_args()
    rows = measured()
    for row, trials in rows.items():
        for name, text in trials.items():
            print("%s %s: %s" % (row, name, text))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"version": torch.__version__.split("+")[0], "build": torch.__version__, "date": str(datetime.date.today()),
                       "backend": "gloo, on a CPU", "ranks": 2, "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
