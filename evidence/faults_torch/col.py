"""COL: collectives, hangs, death."""
import os
import signal
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

from job import Planted, row, skip
from models import Pair, batch_norm_net, linear, local_gradients, loss_of, sgd


def train_step(job, ddp, optimizer, batch):
    optimizer.zero_grad()
    loss_of(ddp(batch)).backward()
    job.step(optimizer)


@row("COL-01", ranks=[1], iteration=3, names=["re:iteration\\W*[23]|bucket\\W*0"],
     cause=r"left (the|its) loop|ran out|fewer batches|exhausted")
def fewer_batches_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(3 if rank == 0 else 2):  # FAULT COL-01
        train_step(job, ddp, optimizer, job.batch())


@row("COL-02", ranks=[0, 1], names=["re:running_mean|buffers? of"], iteration=2, cause=r"eval|buffers?\b")
def evaluation_on_rank_0_only(rank, world, job):
    ddp = job.wrap(batch_norm_net())
    optimizer = sgd(ddp)
    for i in job.iterations(3):
        if i == 2 and rank == 0:
            ddp.eval()
            with torch.no_grad():
                ddp(job.batch())  # FAULT COL-02
            ddp.train()
        train_step(job, ddp, optimizer, job.batch())


@row("COL-03", ranks=[0, 1], names=["re:all_?reduce", "re:broadcast"], cause=r"mismatch|another key|extra collective")
def another_metric_on_one_rank(rank, world, job):
    metrics = {"loss": torch.ones(1), "accuracy": torch.ones(1)}
    if rank == 1:
        metrics["f1"] = torch.ones(1)
    for _ in job.iterations(1):
        for value in metrics.values():
            dist.all_reduce(value)  # FAULT COL-03
    job.iteration = 2
    job.report_progress()
    dist.broadcast(torch.zeros(3), src=0)
    dist.barrier()


@row("COL-04", ranks=[1], names=["re:sample 17 is broken"], iteration=2, cause=r"sample 17 is broken|exception (on|in) rank 1")
def exception_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for i in job.iterations(3):
        if rank == 1 and i == 2:
            raise Planted("sample 17 is broken")  # FAULT COL-04
        train_step(job, ddp, optimizer, job.batch())


@row("COL-06", ranks=[0, 1], names=["re:all_?reduce", "re:broadcast"], cause=r"mismatch|different collective")
def all_reduce_against_broadcast(rank, world, job):
    value = torch.ones(4)
    for _ in job.iterations(1):
        if rank == 0:
            dist.all_reduce(value)  # FAULT COL-06
        else:
            dist.broadcast(value, src=0)  # FAULT COL-06
    dist.barrier()


@row("COL-07", ranks=[0, 1], names=["re:\\[4\\]", "re:\\[8\\]"], cause=r"mismatch|different (count|shape|size)")
def another_count(rank, world, job):
    value = torch.full((4 if rank == 0 else 8,), 1.0)
    job.watch("value", lambda: value[:4])
    for _ in job.iterations(1):
        dist.all_reduce(value)  # FAULT COL-07


@row("COL-08", ranks=[0, 1], names=["re:float", "re:\\bint|long"], cause=r"mismatch|different (data ?type|dtype)")
def float_against_int(rank, world, job):
    value = torch.ones(4) if rank == 0 else torch.ones(4, dtype=torch.int32)
    job.watch("value", lambda: value)
    for _ in job.iterations(1):
        dist.all_reduce(value)  # FAULT COL-08


@row("COL-10", ranks=[0, 1], names=["re:order"], cause=r"order|mismatch")
def two_wrappers_backward_in_another_order(rank, world, job):
    first = job.wrap(linear(4, 4), "first.")
    second = job.wrap(linear(4, 9), "second.")
    optimizer = sgd(list(first.parameters()) + list(second.parameters()))
    for _ in job.iterations(2):
        optimizer.zero_grad()
        losses = [loss_of(first(job.batch())), loss_of(second(job.batch()))]
        for loss in losses if rank == 0 else reversed(losses):
            loss.backward()  # FAULT COL-10
        job.step(optimizer)


@row("COL-12", ranks=[0, 1], names=["re:order|construct"], iteration=0, cause=r"order|constructed")
def two_wrappers_constructed_in_another_order(rank, world, job):
    modules = {"first": linear(4, 4), "second": linear(4, 9)}
    for name in ("first", "second") if rank == 0 else ("second", "first"):
        job.wrap(modules[name], name + ".")  # FAULT COL-12


@row("COL-13", world=3, ranks=[1], names=["re:barrier"], cause=r"failed to pass|missed|did not reach")
def barrier_missed_by_one_of_three(rank, world, job):
    for _ in job.iterations(1):
        if rank != 1:
            dist.monitored_barrier(timeout=timedelta(seconds=2))  # FAULT COL-13
        else:
            time.sleep(4)  # FAULT COL-13


@row("COL-14", ranks=[1], names=["re:signal 9|SIGKILL|died|killed"], iteration=2, cause=r"signal 9|SIGKILL|died|killed")
def killed_in_backward(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)

    def die(gradient):
        os.kill(os.getpid(), signal.SIGKILL)  # FAULT COL-14

    for i in job.iterations(3):
        if rank == 1 and i == 2:
            ddp.module.a.weight.register_hook(die)
        train_step(job, ddp, optimizer, job.batch())


@row("COL-15", ranks=[1], names=["re:data loading|load_batch|alive"], iteration=2, cause=r"alive|data loading|slow")
def slower_than_the_time_out(rank, world, job):
    def load_batch(i):
        if rank == 1 and i == 2:
            time.sleep(7)  # FAULT COL-15
        return job.batch()

    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for i in job.iterations(3):
        train_step(job, ddp, optimizer, load_batch(i))


skip("COL-16", "SyncBatchNorm of PyTorch refuses tensors on a CPU, and these runs are on a CPU")


@row("COL-18", ranks=[1], names=["weight"], iteration=0, cause=r"sizes?\b.*(match|differ)|shapes? differ")
def another_parameter_shape(rank, world, job):
    job.wrap(linear(4, 4) if rank == 0 else linear(4, 5))  # FAULT COL-18


@row("COL-19", ranks=[1], names=["b.weight"], iteration=0, cause=r"inconsistent \d+ params|number of parameters|params, while")
def another_parameter_count(rank, world, job):
    module = Pair()
    if rank == 0:
        module = nn.ModuleDict({"a": linear()})
    job.wrap(module)  # FAULT COL-19


@row("COL-20", ranks=[1], names=["weight"], iteration=0, cause=r"dtypes? differ|data ?type|TensorDtypes")
def another_parameter_type(rank, world, job):
    module = linear()
    if rank == 1:
        module = module.double()  # FAULT COL-20
    ddp = job.wrap(module)
    optimizer = sgd(ddp)
    for _ in job.iterations(2):
        optimizer.zero_grad()
        loss_of(ddp(job.batch().to(module.weight.dtype))).backward()
        job.step(optimizer)


@row("COL-21", ranks=[1], names=["re:find_unused_parameters"], cause=r"options? (differ|mismatch)|same options|find_unused_parameters.*differ")
def another_option_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair(), find_unused_parameters=rank == 1)  # FAULT COL-21
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        train_step(job, ddp, optimizer, job.batch())


@row("COL-22", ranks=[1], names=["re:\\bhook"], cause=r"communication hook|comm_?hook|fp16_compress")
def communication_hook_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    if rank == 1:
        ddp.register_comm_hook(dist.group.WORLD, default_hooks.fp16_compress_hook)  # FAULT COL-22
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        train_step(job, ddp, optimizer, job.batch())


@row("COL-23", ranks=[0, 1], names=["re:order"], cause=r"order|mismatch")
def backwards_of_one_class_in_another_order(rank, world, job):
    first, second = job.wrap(Pair(), "first."), job.wrap(Pair(), "second.")
    optimizer = sgd(list(first.parameters()) + list(second.parameters()))
    for _ in job.iterations(2):
        optimizer.zero_grad()
        want = local_gradients(first.module, lambda module: loss_of(module(job.batch())))
        losses = [loss_of(first(job.batch())), loss_of(second(2 * job.batch()))]
        for loss in losses if rank == 0 else reversed(losses):
            loss.backward()  # FAULT COL-23
        job.check("gradient of first.a", first.module.a.weight.grad, job.mean_over_ranks(want[0]))
        job.step(optimizer)


@row("COL-24", ranks=[0, 1], names=["re:order|construct"], iteration=0, cause=r"order|constructed")
def wrappers_of_one_class_constructed_in_another_order(rank, world, job):
    modules = {"first": Pair(), "second": Pair()}
    for name in ("first", "second") if rank == 0 else ("second", "first"):
        job.wrap(modules[name], name + ".")  # FAULT COL-24


@row("COL-25", ranks=[1], names=["re:exit|left|died"], iteration=2, cause=r"exited|has left|status 0|died")
def exit_in_the_middle(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for i in job.iterations(3):
        if rank == 1 and i == 2:
            os._exit(0)  # FAULT COL-25
        train_step(job, ddp, optimizer, job.batch())


@row("COL-26", ranks=[0], names=["re:all_?reduce"], iteration=3, cause=r"mismatch|different (collective|shape)|extra collective")
def lone_all_reduce(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for i in job.iterations(4):
        optimizer.zero_grad()
        loss = loss_of(ddp(job.batch()))
        loss.backward()
        job.step(optimizer)
        if i == 2 and rank == 0:
            job.iteration = 3
            job.report_progress()
            dist.all_reduce(loss.detach())  # FAULT COL-26


@row("COL-27", ranks=[1], names=["re:gradient of b is not finite"], iteration=2, cause=r"not finite|exception (on|in) rank 1")
def assertion_in_a_gradient_hook(rank, world, job):
    def check(gradient):
        if not gradient.isfinite().all():
            raise Planted("the gradient of b is not finite")

    ddp = job.wrap(Pair())
    ddp.module.b.weight.register_hook(check)
    optimizer = sgd(ddp)
    for i in job.iterations(3):
        x = job.batch() * (1e30 if rank == 1 and i == 2 else 1)
        optimizer.zero_grad()
        loss_of(ddp(x)).backward()  # FAULT COL-27
        job.step(optimizer)
