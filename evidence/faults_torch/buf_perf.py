"""BUF: buffers. PERF: right, but slower or larger than needed."""
import time

import torch
import torch.distributed as dist
from torch import nn

from job import row
from models import Pair, batch_norm_net, linear, local_gradients, loss_of, sgd


def two_forwards_one_backward(job, module):
    ddp = job.wrap(module)
    optimizer = sgd(ddp)
    for _ in job.iterations(2):
        optimizer.zero_grad()
        want = local_gradients(ddp.module, lambda module: loss_of(module(job.batch())) + loss_of(module(job.batch() + 1)))
        real, fake = ddp(job.batch()), ddp(job.batch() + 1)  # FAULT BUF-01  # FAULT BUF-02
        (loss_of(real) + loss_of(fake)).backward()
        for parameter, gradient in zip(ddp.parameters(), want):
            job.check("gradient", parameter.grad, job.mean_over_ranks(gradient))
        job.step(optimizer)


@row("BUF-01", names=["1.running_mean"], cause=r"broadcast")
def batch_norm_twice(rank, world, job):
    two_forwards_one_backward(job, batch_norm_net())


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = linear()
        self.register_buffer("scale", torch.full((4,), 2.0))

    def forward(self, x):
        return self.a(x) * self.scale


@row("BUF-02", names=["scale"], cause=r"broadcast")
def any_buffer_twice(rank, world, job):
    two_forwards_one_backward(job, Scaled())


class MovingSpread(nn.Module):
    """layer(x / spread), of which spread is a buffer that a list beside the module holds, too"""

    def __init__(self):
        super().__init__()
        self.layer = linear()
        self.register_buffer("spread", torch.ones(4))
        self.spreads = [self.spread]

    def forward(self, x):
        with torch.no_grad():
            self.spreads[0] = self.spreads[0] * 0.9 + x.abs().mean(0) * 0.1  # FAULT BUF-03
        return self.layer(x / self.spreads[0])


@row("BUF-03", names=["spread"], cause=r"replaced|assigned|not the (tensor|object)|stale")
def buffer_assigned_anew(rank, world, job):
    ddp = job.wrap(MovingSpread())
    optimizer = sgd(ddp)
    for _ in job.iterations(5):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.check("the buffer that is saved", ddp.module.state_dict()["spread"], ddp.module.spreads[0])
        job.step(optimizer)


@row("PERF-01", slow_only=True, names=["re:find_unused_parameters"], cause=r"did not find any unused parameters",
     warning=r"did not find any unused parameters")
def find_unused_without_need(rank, world, job):
    torch.manual_seed(0)
    plain = nn.Sequential(*[linear() for _ in range(200)])
    flagged = nn.Sequential(*[linear() for _ in range(200)])
    wrapped = {"plain": job.wrap(plain, "plain."),
               "flag": job.wrap(flagged, "flag.", find_unused_parameters=True)}  # FAULT PERF-01
    seconds = {name: [] for name in wrapped}
    for _ in job.iterations(15):
        for name, ddp in wrapped.items():
            start = time.perf_counter()
            loss_of(ddp(job.batch())).backward()
            seconds[name].append(time.perf_counter() - start)
    for name, values in seconds.items():
        job.measure("median ms " + name, round(1000 * sorted(values)[len(values) // 2], 2))


def counting_hook(counter):
    def hook(state, bucket):
        counter.append(1)
        work = dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True)
        return work.get_future().then(lambda done: done.value()[0])

    return hook


@row("PERF-02", slow_only=True, names=["re:no_sync"], cause=r"no_sync|micro-batch|collectives per step")
def no_sync_round_backward_only(rank, world, job):
    ddp = job.wrap(Pair())
    collectives = []
    ddp.register_comm_hook(None, counting_hook(collectives))
    optimizer = sgd(ddp)
    for _ in job.iterations(2):
        optimizer.zero_grad()
        for micro_batch in range(4):
            loss = loss_of(ddp(job.batch() + micro_batch))
            if micro_batch < 3:
                with ddp.no_sync():  # FAULT PERF-02
                    loss.backward()
            else:
                loss.backward()
        job.step(optimizer)
    job.measure("all-reduces per step (needed: 1)", len(collectives) / 2)


@row("PERF-03", slow_only=True, names=["re:retain_graph"], cause=r"retain_graph|bytes held|kept alive")
def needless_retain_graph(rank, world, job):
    first, second = job.wrap(Pair(), "first."), job.wrap(Pair(), "second.")
    optimizer = sgd(list(first.parameters()) + list(second.parameters()))
    for _ in job.iterations(2):
        optimizer.zero_grad()
        loss = loss_of(first(job.batch()))
        loss.backward(retain_graph=True)  # FAULT PERF-03
        held = True
        try:
            loss.grad_fn.next_functions[0][0]._saved_self
        except RuntimeError:
            held = False
        job.measure("saved tensors still held after the first backward", held)
        loss_of(second(job.batch())).backward()
        job.step(optimizer)


@row("PERF-05", slow_only=True, ranks=[1], names=["b.weight"], cause=r"slow|late|straggl")
def slow_backward_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    if rank == 1:
        ddp.module.b.weight.register_hook(lambda gradient: time.sleep(0.2))  # FAULT PERF-05
    for _ in job.iterations(3):
        optimizer.zero_grad()
        start = time.perf_counter()
        loss_of(ddp(job.batch())).backward()
        job.measure("backward, ms", round(1000 * (time.perf_counter() - start)))
        job.step(optimizer)


@row("PERF-06", slow_only=True, names=["weight"], cause=r"strides? do not match", warning=r"Grad strides do not match")
def gradient_strides_differ(rank, world, job):
    ddp = job.wrap(nn.Conv2d(4, 4, 1, bias=False))
    # As a kernel for channels-last images gives it; which kernel runs depends on the machine.
    ddp.module.weight.register_hook(lambda gradient: gradient.as_strided((4, 4, 1, 1), (4, 1, 4, 4)))  # FAULT PERF-06
    optimizer = sgd(ddp)
    for _ in job.iterations(2):
        optimizer.zero_grad()
        loss_of(ddp(job.batch(2, 36).view(2, 4, 3, 3))).backward()
        job.step(optimizer)


@row("PERF-07", slow_only=True, names=["a.weight"], cause=r"averaged twice|already (been )?(averaged|reduced)|all_?reduced? by hand")
def gradients_averaged_by_hand_too(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        want = local_gradients(ddp.module, lambda module: loss_of(module(job.batch())))
        loss_of(ddp(job.batch())).backward()
        for parameter in ddp.parameters():
            dist.all_reduce(parameter.grad)  # FAULT PERF-07
            parameter.grad /= world
        job.check("gradient of a", ddp.module.a.weight.grad, job.mean_over_ranks(want[0]))
        job.step(optimizer)


@row("PERF-08", slow_only=True, names=["re:sampler|data"], cause=r"same (data|batch)|sampler")
def same_data_on_every_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for i in job.iterations(12):
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(i))  # FAULT PERF-08
        optimizer.zero_grad()
        loss_of(ddp(x)).backward()
        job.step(optimizer)
