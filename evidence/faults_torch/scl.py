"""SCL: the ranks agree, the numbers are wrong."""
import contextlib
import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

from job import row
from models import Gate, Pair, linear, local_gradients, loss_of, sgd


@row("SCL-01", names=["a.weight", "b.weight"], cause=r"world\W*(size)?\s*(x|times)|factor|sum(med)? instead")
def hook_forgets_the_division(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)

    def summing_hook(state, bucket):
        work = dist.all_reduce(bucket.buffer(), async_op=True)  # FAULT SCL-01
        return work.get_future().then(lambda done: done.value()[0])

    ddp.register_comm_hook(None, summing_hook)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        want = local_gradients(ddp.module, lambda module: loss_of(module(job.batch())))
        loss_of(ddp(job.batch())).backward()
        job.check("gradient of a", ddp.module.a.weight.grad, job.mean_over_ranks(want[0]))
        job.step(optimizer)


@row("SCL-02", names=["re:batch|sample"], cause=r"sample|batch size")
def uneven_local_batches(rank, world, job):
    ddp = job.wrap(linear())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        x = job.batch(7 if rank == 0 else 1)
        sum_of_losses = local_gradients(ddp.module, lambda module: module(x).pow(2).sum() / 4)
        want = job.mean_over_ranks(sum_of_losses[0]) * world / 8
        optimizer.zero_grad()
        loss_of(ddp(x)).backward()  # FAULT SCL-02
        job.check("gradient over all samples", ddp.module.weight.grad, want)
        job.step(optimizer)


@row("SCL-03", must_work=True)
def branch_used_on_one_of_two_ranks(rank, world, job):
    ddp = job.wrap(Gate(), find_unused_parameters=True)
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        x = job.batch()
        local = local_gradients(ddp.module, lambda module: loss_of(module(x, True)))
        with_zeros = job.mean_over_ranks(local[1] * (rank == 0))
        optimizer.zero_grad()
        loss_of(ddp(x, rank == 0)).backward()
        job.check("gradient of b", ddp.module.b.weight.grad, with_zeros)
        job.step(optimizer)


@row("SCL-05", names=["a.weight"], cause=r"overflow|\binf\b|finite")
def half_precision_hook_overflows(rank, world, job):
    ddp = job.wrap(Pair())
    ddp.register_comm_hook(dist.group.WORLD, default_hooks.fp16_compress_hook)
    optimizer = sgd(ddp, lr=1e-9)
    for _ in job.iterations(2):
        optimizer.zero_grad()
        x = job.batch()
        want = local_gradients(ddp.module, lambda module: 1e7 * loss_of(module(x)))
        (1e7 * loss_of(ddp(x))).backward()  # FAULT SCL-05
        job.check("gradient of a", ddp.module.a.weight.grad, job.mean_over_ranks(want[0]), tolerance=0.01)
        job.step(optimizer)


@row("SCL-06", ranks=[1], names=["a.weight"], cause=r"hook|outlier|norm")
def gradient_hook_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp, lr=1e-3)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        x = job.batch()
        want = local_gradients(ddp.module, lambda module: loss_of(module(x)))
        hook = None
        if rank == 1:
            hook = ddp.module.a.weight.register_hook(lambda gradient: gradient * 100)  # FAULT SCL-06
        loss_of(ddp(x)).backward()
        if hook is not None:
            hook.remove()
        job.check("gradient of a", ddp.module.a.weight.grad, job.mean_over_ranks(want[0]))
        job.step(optimizer)


@row("SCL-07", names=["a.weight", "b.weight"], iteration=2, cause=r"zero_grad|accumulated over")
def gradients_never_zeroed(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        x = job.batch()
        want = local_gradients(ddp.module, lambda module: loss_of(module(x)))
        loss_of(ddp(x)).backward()
        job.check("gradient of a", ddp.module.a.weight.grad, job.mean_over_ranks(want[0]))
        job.step(optimizer)  # FAULT SCL-07


class Ratio(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = linear()
        self.h1 = linear()
        self.h2 = linear()

    def forward(self, x, divisor):
        x = self.t(x)
        return self.h1(x), self.h2(x) / divisor


@row("SCL-08", ranks=[1], names=["t.weight"], cause=r"\bdiv|\binf\b|\bnan\b|zero term")
def zero_times_infinity(rank, world, job):
    ddp = job.wrap(Ratio())
    optimizer = sgd(ddp)
    for _ in job.iterations(2):
        optimizer.zero_grad()
        x = job.batch()
        want = local_gradients(ddp.module, lambda module: loss_of(module(x, 1.0)[0]))
        used, unused = ddp(x, 0.0 if rank == 1 else 1.0)  # FAULT SCL-08
        (loss_of(used) + 0 * unused.sum()).backward()  # FAULT SCL-08
        job.check("gradient of t", ddp.module.t.weight.grad, job.mean_over_ranks(want[0]))
        job.step(optimizer)


@row("SCL-10", names=["re:clip"], cause=r"clip.*(before|reduc)|order of clip")
def clipped_before_the_reduction(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    parameters = list(ddp.parameters())
    for _ in job.iterations(3):
        optimizer.zero_grad()
        x = job.batch() * (10 if rank == 1 else 1)
        local = local_gradients(ddp.module, lambda module: 2 * loss_of(module(x)))
        mean = [job.mean_over_ranks(gradient) for gradient in local]
        norm = torch.sqrt(sum(gradient.pow(2).sum() for gradient in mean))
        want = mean[0] * min(1.0, (0.1 / (norm + 1e-6)).item())
        with ddp.no_sync():
            loss_of(ddp(x)).backward()
            nn.utils.clip_grad_norm_(parameters, 0.1)  # FAULT SCL-10
        loss_of(ddp(x)).backward()
        nn.utils.clip_grad_norm_(parameters, 0.1)
        job.check("clipped gradient of a", ddp.module.a.weight.grad, want)
        job.step(optimizer)


@row("SCL-11", names=["a.weight"], cause=r"averaged twice|already (been )?(averaged|reduced)|all_?reduced? by hand")
def gradients_summed_by_hand_too(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        want = local_gradients(ddp.module, lambda module: loss_of(module(job.batch())))
        loss_of(ddp(job.batch())).backward()
        for parameter in ddp.parameters():
            dist.all_reduce(parameter.grad)  # FAULT SCL-11
        job.check("gradient of a", ddp.module.a.weight.grad, job.mean_over_ranks(want[0]))
        job.step(optimizer)


@row("SCL-12", ranks=[1], names=["re:micro-?batch|accumulation"], cause=r"micro-?batches|accumulat")
def micro_batches_by_rank(rank, world, job):
    ddp = job.wrap(linear())
    optimizer = sgd(ddp)
    count = 2 if rank == 0 else 3
    for _ in job.iterations(3):
        batches = [job.batch() + index for index in range(count)]
        sums = local_gradients(ddp.module, lambda module: sum(loss_of(module(x)) for x in batches))
        want = job.mean_over_ranks(sums[0]) * world / 5
        optimizer.zero_grad()
        for index, x in enumerate(batches):
            with ddp.no_sync() if index + 1 < count else contextlib.nullcontext():
                (loss_of(ddp(x)) / count).backward()  # FAULT SCL-12
        job.check("gradient over all micro-batches", ddp.module.weight.grad, want)
        job.step(optimizer)


def check_that_b_moves(job, ddp, optimizer):
    """Three steps; b is to go where its averaged gradient leads."""
    for _ in job.iterations(3):
        before = ddp.module.b.weight.detach().clone()
        local = local_gradients(ddp.module, lambda module: loss_of(module(job.batch())))
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)
        job.check("weight of b", ddp.module.b.weight, before - 0.1 * job.mean_over_ranks(local[1]))


@row("SCL-13", names=["b.weight"], cause=r"no optimizer holds|not (held|in any optimizer)")
def head_replaced_after_the_optimizer(rank, world, job):
    module = Pair()
    optimizer = sgd(module)
    module.b = linear()  # FAULT SCL-13
    check_that_b_moves(job, job.wrap(module), optimizer)


@row("SCL-14", names=["b.weight"], cause=r"replaced|holds (an earlier|the old)|no longer|not the object that was wrapped")
def optimizer_of_the_layer_before(rank, world, job):
    ddp = job.wrap(Pair(), find_unused_parameters=True)
    optimizer = sgd(ddp)
    torch.manual_seed(7)
    ddp.module.b = linear()  # FAULT SCL-14
    check_that_b_moves(job, ddp, optimizer)


@row("SCL-15", names=["re:\\bstep"], cause=r"same gradients|no (new )?backward|step(ped)? twice")
def step_taken_twice(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        before = ddp.module.a.weight.detach().clone()
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        gradient = ddp.module.a.weight.grad.clone()
        job.step(optimizer)
        job.step(optimizer)  # FAULT SCL-15
        job.check("weight of a", ddp.module.a.weight, before - 0.1 * gradient)


class Distance(Pair):
    def forward(self, x, y):
        apart = super().forward(x) - super().forward(y)
        return apart.pow(2).sum(dim=1).sqrt()  # FAULT SCL-16


@row("SCL-16", ranks=[1], names=["a.weight"], cause=r"sqrt|\binf\b|\bnan\b|finite")
def root_of_zero(rank, world, job):
    ddp = job.wrap(Distance())
    optimizer = sgd(ddp)
    for _ in job.iterations(2):
        optimizer.zero_grad()
        x = job.batch()
        ddp(x, x if rank == 1 else 2 * x).mean().backward()
        job.check("gradient of a is finite", ddp.module.a.weight.grad.isfinite().all(), 1)
        job.step(optimizer)


@row("SCL-17", ranks=[1], names=["re:loss|scale|divid"], iteration=1, cause=r"divid|multipli|factor|outlier|norm")
def loss_not_divided_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(5):
        x = job.batch()
        want = local_gradients(ddp.module, lambda module: loss_of(module(x)) / 4)
        optimizer.zero_grad()
        loss = loss_of(ddp(x))
        (loss if rank == 1 else loss / 4).backward()  # FAULT SCL-17
        job.check("gradient of a", ddp.module.a.weight.grad, job.mean_over_ranks(want[0]))
        job.step(optimizer)


@row("SCL-18", names=["1.weight"], cause=r"no optimizer holds|not (held|in any (optimizer|group))")
def parameter_in_no_group(rank, world, job):
    ddp = job.wrap(nn.Sequential(linear(), nn.BatchNorm1d(4)))
    layer, norm = ddp.module
    optimizer = torch.optim.SGD([{"params": [layer.weight], "weight_decay": 0.1}, {"params": [norm.bias]}], lr=0.01)
    for _ in job.iterations(36):
        x = job.batch()
        before = norm.weight.detach().clone()
        local = local_gradients(copy.deepcopy(ddp.module), lambda module: loss_of(module(x) - 1))
        ddp.zero_grad()
        loss_of(ddp(x) - 1).backward()
        job.step(optimizer)  # FAULT SCL-18
        job.check("weight of the norm", norm.weight, before - 0.01 * job.mean_over_ranks(local[1]))
