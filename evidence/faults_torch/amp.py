"""AMP: autocast and the gradient scaler."""
import contextlib
import math

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

from job import row
from models import Gan, Pair, linear, local_gradients, loss_of, sgd


def make_scaler(**options):
    return torch.amp.GradScaler("cpu", **options)


def wrapped(job, **options):
    ddp = job.wrap(Pair(), **options)
    return ddp, job.scaled(sgd(ddp)), list(ddp.parameters())


class Expected:
    """Where the weights are to be after a step without a scaler."""

    def __init__(self, job, ddp, loss=lambda job, module: loss_of(module(job.batch()))):
        self.job, self.ddp = job, ddp
        local = local_gradients(ddp.module, lambda module: loss(job, module))
        self.want = [p.detach() - 0.1 * job.mean_over_ranks(g) for p, g in zip(ddp.parameters(), local)]

    def check(self):
        for name, parameter, want in zip("ab", self.ddp.parameters(), self.want):
            self.job.check("weight of " + name, parameter, want)


@row("AMP-01", names=["re:loss"], cause=r"did not use scaler\.scale|not scaled")
def plain_backward(rank, world, job):
    ddp, optimizer, parameters = wrapped(job)
    scaler = make_scaler()
    for _ in job.iterations(2):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()  # FAULT AMP-01
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(parameters, 1.0)
        scaler.step(optimizer)
        scaler.update()


@row("AMP-02", names=["a.weight"], iteration=2, cause=r"not scaled|did not use scaler\.scale|bypass")
def plain_backward_from_the_second_step_on(rank, world, job):
    ddp, optimizer, _ = wrapped(job)
    scaler = make_scaler(init_scale=1024.0)
    for i in job.iterations(3):
        expected = Expected(job, ddp)
        optimizer.zero_grad()
        loss = loss_of(ddp(job.batch()))
        if i == 1:
            scaler.scale(loss).backward()
        else:
            loss.backward()  # FAULT AMP-02
        scaler.step(optimizer)
        scaler.update()
        expected.check()


@row("AMP-03", names=["b.weight"], iteration=2, cause=r"another scale|scale.*changed|update\(\)")
def update_after_each_optimizer(rank, world, job):
    ddp = job.wrap(Pair())
    of_a, of_b = job.scaled(sgd(ddp.module.a)), job.scaled(sgd(ddp.module.b))
    scaler = make_scaler(init_scale=1024.0, growth_interval=2)
    for i in job.iterations(3):
        expected = Expected(job, ddp)
        of_a.zero_grad()
        of_b.zero_grad()
        scaler.scale(loss_of(ddp(job.batch()))).backward()
        scaler.step(of_a)
        if i == 2:
            scaler.update()  # FAULT AMP-03
        scaler.step(of_b)
        scaler.update()
        expected.check()


@row("AMP-05", names=["re:optimizer|SGD"], iteration=2, cause=r"update\(\)")
def update_missing_with_unscale(rank, world, job):
    ddp, optimizer, parameters = wrapped(job)
    scaler = make_scaler()
    for _ in job.iterations(2):
        optimizer.zero_grad()
        scaler.scale(loss_of(ddp(job.batch()))).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(parameters, 1.0)
        scaler.step(optimizer)  # FAULT AMP-05


@row("AMP-06", names=["re:optimizer|SGD"], iteration=2, cause=r"update\(\)")
def update_missing(rank, world, job):
    ddp, optimizer, _ = wrapped(job)
    scaler = make_scaler()
    for _ in job.iterations(2):
        optimizer.zero_grad()
        scaler.scale(loss_of(ddp(job.batch()))).backward()
        scaler.step(optimizer)  # FAULT AMP-06


@row("AMP-07", names=["re:optimizer|SGD"], cause=r"already been called")
def unscaled_twice(rank, world, job):
    ddp, optimizer, parameters = wrapped(job)
    scaler = make_scaler()
    for _ in job.iterations(2):
        optimizer.zero_grad()
        scaler.scale(loss_of(ddp(job.batch()))).backward()
        scaler.unscale_(optimizer)
        scaler.unscale_(optimizer)  # FAULT AMP-07
        nn.utils.clip_grad_norm_(parameters, 1.0)
        scaler.step(optimizer)
        scaler.update()


@row("AMP-08", names=["re:optimizer|SGD"], step_is_right=True, cause=r"after step")
def unscaled_after_step(rank, world, job):
    ddp, optimizer, _ = wrapped(job)
    scaler = make_scaler()
    for _ in job.iterations(2):
        optimizer.zero_grad()
        scaler.scale(loss_of(ddp(job.batch()))).backward()
        scaler.step(optimizer)
        scaler.unscale_(optimizer)  # FAULT AMP-08
        scaler.update()


@row("AMP-09", names=["re:optimizer|SGD"], iteration=3, cause=r"update\(\)")
def update_skipped_with_the_step(rank, world, job):
    ddp, optimizer, parameters = wrapped(job)
    scaler = make_scaler(init_scale=1024.0)
    for i in job.iterations(3):
        optimizer.zero_grad()
        scaler.scale(loss_of(ddp(job.batch())) * (math.inf if i == 2 else 1.0)).backward()
        scaler.unscale_(optimizer)  # FAULT AMP-09
        if not nn.utils.clip_grad_norm_(parameters, 1.0).isfinite():
            continue
        scaler.step(optimizer)
        scaler.update()


@row("AMP-11", names=["generator.weight"], cause=r"no gradient|without gradient|has a gradient|no backward")
def optimizer_without_gradients(rank, world, job):
    gan = Gan()
    ddp = job.wrap(gan, find_unused_parameters=True)
    of_generator, of_discriminator = job.scaled(sgd(gan.generator)), job.scaled(sgd(gan.discriminator))
    scaler = make_scaler()
    for i in job.iterations(2):
        of_generator.zero_grad()
        of_discriminator.zero_grad()
        scaler.scale(loss_of(ddp(job.batch(), i == 1))).backward()
        scaler.step(of_generator)  # FAULT AMP-11
        scaler.step(of_discriminator)
        scaler.update()


@row("AMP-12", names=["re:optimizer|SGD"], cause=r"\bstep|unscale")
def update_without_step(rank, world, job):
    ddp, optimizer, _ = wrapped(job)
    scaler = make_scaler()
    for _ in job.iterations(2):
        for is_last in (False, True):
            with contextlib.nullcontext() if is_last else ddp.no_sync():
                scaler.scale(loss_of(ddp(job.batch())) / 2).backward()
            if is_last:
                scaler.step(optimizer)
                optimizer.zero_grad()
            scaler.update()  # FAULT AMP-12


class Personal(nn.Module):
    """A layer that is averaged, and one that each rank keeps for itself."""

    def __init__(self):
        super().__init__()
        self.shared = linear()
        self.own = linear()

    def forward(self, x):
        return self.shared(x), self.own(x)


@row("AMP-13", names=["own.weight"], ranks=[1], iteration=2, cause=r"found_inf|\binf\b|finite|scale.*differ")
def infinite_on_one_rank(rank, world, job):
    module = Personal()
    nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, ["own.weight"])
    ddp = job.wrap(module)
    del job.watched["own.weight"]
    optimizer = job.scaled(sgd(ddp))
    scaler = make_scaler(init_scale=1024.0)
    job.watch("scale", scaler.get_scale)
    for i in job.iterations(3):
        optimizer.zero_grad()
        of_shared, of_own = ddp(job.batch())
        spike = math.inf if i == 2 and rank == 1 else 1.0
        scaler.scale(loss_of(of_shared) + loss_of(of_own) * spike).backward()  # FAULT AMP-13
        scaler.step(optimizer)
        scaler.update()


@row("AMP-15", names=["a.weight"], cause=r"FP16|half|float16")
def half_precision_parameters(rank, world, job):
    ddp = job.wrap(Pair().half())
    optimizer = job.scaled(sgd(ddp))
    scaler = make_scaler(init_scale=1024.0)
    for _ in job.iterations(2):
        optimizer.zero_grad()
        scaler.scale(loss_of(ddp(job.batch().half()))).backward()
        scaler.step(optimizer)  # FAULT AMP-15
        scaler.update()


@row("AMP-16", names=["a.weight"], cause=r"accumulat|two scales|unscaled (already|twice)")
def unscaled_within_accumulation(rank, world, job):
    ddp, optimizer, parameters = wrapped(job)
    scaler = make_scaler(init_scale=1024.0)
    for _ in job.iterations(2):
        expected = Expected(job, ddp)
        for is_last in (False, True):
            with contextlib.nullcontext() if is_last else ddp.no_sync():
                scaler.scale(loss_of(ddp(job.batch())) / 2).backward()
            scaler.unscale_(optimizer)  # FAULT AMP-16
            if is_last:
                nn.utils.clip_grad_norm_(parameters, 1000.0)
                scaler.step(optimizer)
                optimizer.zero_grad()
            scaler.update()
        expected.check()


@row("AMP-18", names=["a.weight"], cause=r"one of two losses|not scaled|two scales")
def one_of_two_losses_scaled(rank, world, job):
    def both(job, module):
        output = module(job.batch())
        return loss_of(output - 1) + output.abs().mean()

    ddp, optimizer, _ = wrapped(job)
    scaler = make_scaler(init_scale=1024.0)
    for _ in job.iterations(2):
        expected = Expected(job, ddp, both)
        optimizer.zero_grad()
        output = ddp(job.batch())
        (scaler.scale(loss_of(output - 1)) + output.abs().mean()).backward()  # FAULT AMP-18
        scaler.step(optimizer)
        scaler.update()
        expected.check()


@row("AMP-19", names=["re:StepLR|lr_scheduler"], iteration=2, cause=r"skipped", warning=r"lr_scheduler\.step\(\)")
def schedule_moves_on(rank, world, job):
    ddp, optimizer, _ = wrapped(job)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    scaler = make_scaler(init_scale=1024.0)
    for i in job.iterations(3):
        optimizer.zero_grad()
        scaler.scale(loss_of(ddp(job.batch())) * (math.inf if i == 2 else 1.0)).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()  # FAULT AMP-19
    job.check("rate after two steps", schedule.get_last_lr()[0], 0.025)


@row("AMP-20", names=["a.weight"], cause=r"overflow|\binf\b|finite")
def half_precision_reduction(rank, world, job):
    ddp, optimizer, _ = wrapped(job)
    ddp.register_comm_hook(dist.group.WORLD, default_hooks.fp16_compress_hook)
    scaler = make_scaler(init_scale=float(1 << 22))
    for _ in job.iterations(3):
        expected = Expected(job, ddp)
        optimizer.zero_grad()
        scaler.scale(loss_of(ddp(job.batch()))).backward()  # FAULT AMP-20
        scaler.step(optimizer)
        scaler.update()
        expected.check()


@row("AMP-21", ranks=[1], names=["re:autocast"], cause=r"autocast")
def autocast_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(6):
        local = {}
        for enabled in (False, True):
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                loss = loss_of(ddp.module(job.batch()))
            local[enabled] = torch.autograd.grad(loss, list(ddp.parameters()))
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=rank == 1):  # FAULT AMP-21
            loss = loss_of(ddp(job.batch()))
        loss.backward()
        # Right is either all with or all without.
        for index, (name, parameter) in enumerate(ddp.named_parameters()):
            means = [job.mean_over_ranks(local[enabled][index]) for enabled in (False, True)]
            nearest = min(means, key=lambda mean: (parameter.grad - mean).abs().max())
            job.check("gradient of " + name, parameter.grad, nearest)
        job.step(optimizer)


@row("AMP-22", ranks=[1], names=["a.weight"], iteration=2, cause=r"not scaled|did not use scaler\.scale|bypass")
def plain_backward_on_one_rank(rank, world, job):
    ddp, optimizer, _ = wrapped(job)
    scaler = make_scaler(init_scale=1024.0)
    for i in job.iterations(3):
        expected = Expected(job, ddp)
        optimizer.zero_grad()
        loss = loss_of(ddp(job.batch()))
        if i > 1 and rank == 1:
            loss.backward()  # FAULT AMP-22
        else:
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        expected.check()
