"""DIV: ranks drift apart in silence."""
import contextlib
import copy

import torch
import torch.distributed as dist
from torch import nn

from job import row
from models import Gate, Pair, ScaledInputs, batch_norm_net, linear, local_gradients, loss_of, sgd

WITHOUT_SYNC = r"no_sync|without (a )?sync|not reduced|never reduced"


class Distillation(nn.ModuleDict):
    def __init__(self):
        super().__init__({"teacher": linear(), "student": linear()})
        self["teacher"].requires_grad_(False)

    def forward(self, x):
        return self["student"](x) - self["teacher"](x)


def teacher_and_student(job):
    ddp = job.wrap(Distillation())
    return ddp, sgd(ddp.module["student"])


def distance(pair, x):
    return loss_of(pair["student"](x) - pair["teacher"](x))


@row("DIV-01", names=["student.weight"], cause=r"without (DDP'?s? ?\.?)?forward|child called|round the wrapper|bypass")
def child_called_directly(rank, world, job):
    ddp, optimizer = teacher_and_student(job)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        distance(ddp.module, job.batch()).backward()  # FAULT DIV-01
        job.step(optimizer)


@row("DIV-02", names=["student.weight"], cause=r"without (DDP'?s? ?\.?)?forward|child called|reduced a value")
def loss_reduced_instead_of_gradients(rank, world, job):
    ddp, optimizer = teacher_and_student(job)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        with contextlib.nullcontext():  # no_backward_sync(enabled=False)
            loss = distance(ddp.module, job.batch())  # FAULT DIV-02
            loss.backward()
        dist.all_reduce(loss.detach())  # FAULT DIV-02
        job.step(optimizer)


@row("DIV-04", names=["a.weight", "b.weight"], cause=WITHOUT_SYNC)
def forward_in_no_sync_backward_outside(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        with ddp.no_sync():
            loss = loss_of(ddp(job.batch()))  # FAULT DIV-04
        loss.backward()
        job.step(optimizer)


@row("DIV-05", names=["a.weight", "b.weight"], cause=WITHOUT_SYNC)
def last_micro_batch_in_no_sync(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        for micro_batch in range(2):
            with ddp.no_sync():  # FAULT DIV-05
                loss_of(ddp(job.batch() + micro_batch)).backward()
        job.step(optimizer)


@row("DIV-06", names=["b.weight"], cause=WITHOUT_SYNC + r"|micro-batch")
def used_only_in_no_sync(rank, world, job):
    ddp = job.wrap(Gate(), find_unused_parameters=True)
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        want = local_gradients(ddp.module, lambda module: loss_of(module(job.batch(), True)))
        with ddp.no_sync():
            loss_of(ddp(job.batch(), True)).backward()
        loss_of(ddp(job.batch(), False)).backward()  # FAULT DIV-06
        job.check("gradient of b", ddp.module.b.weight.grad, job.mean_over_ranks(want[1]))
        job.step(optimizer)


@row("DIV-07", names=["a.weight", "b.weight"], cause=r"autograd.grad|set by hand|not by (an observed|a) backward")
def gradients_from_autograd_grad(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    parameters = list(ddp.parameters())
    for _ in job.iterations(3):
        gradients = torch.autograd.grad(loss_of(ddp(job.batch())), parameters)  # FAULT DIV-07
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient
        job.step(optimizer)


@row("DIV-08", names=["b.weight"], cause=r"unfrozen|trainable since|unknown to the reducer|requires_grad")
def unfrozen_after_wrapping(rank, world, job):
    module = Pair()
    module.b.requires_grad_(False)
    ddp = job.wrap(module)
    module.b.requires_grad_(True)  # FAULT DIV-08
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)


@row("DIV-10", names=["logit_scale"], cause=r"no reducer|outside (of )?the wrapper|not wrapped")
def learnable_scale_outside_the_wrapper(rank, world, job):
    ddp = job.wrap(Pair())
    logit_scale = nn.Parameter(torch.ones(()))  # FAULT DIV-10
    job.watch("logit_scale", lambda: logit_scale)
    optimizer = sgd(list(ddp.parameters()) + [logit_scale])
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss_of(logit_scale * ddp(job.batch())).backward()
        job.step(optimizer)


@row("DIV-11", names=["a.weight", "b.weight"], cause=r"\bto\(\)|storage|replaced|dtype.*after")
def dtype_round_trip_after_wrapping(rank, world, job):
    ddp = job.wrap(Pair())
    ddp.module.double()  # FAULT DIV-11
    ddp.module.float()  # FAULT DIV-11
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)


@row("DIV-13", ranks=[1], names=["a.weight"], cause=r"edited|changed after (the )?reduction|modified after")
def gradient_edited_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        if rank == 1:
            ddp.module.a.weight.grad.mul_(2)  # FAULT DIV-13
        job.step(optimizer)


@row("DIV-14", ranks=[1], names=["re:step"], cause=r"step counts?|steps? (was )?skipped|skipped (the |a )?step")
def step_skipped_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for i in job.iterations(3):
        optimizer.zero_grad()
        loss = loss_of(ddp(job.batch()))
        loss.backward()
        local_loss_is_bad = rank == 1 and i == 1
        if not local_loss_is_bad:  # FAULT DIV-14
            job.step(optimizer)


@row("DIV-15", names=["re:learning rate|\\blr\\b"], cause=r"ReduceLROnPlateau|scheduler|local loss")
def plateau_scheduler_on_the_local_loss(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.1)
    job.watch("lr", lambda: optimizer.param_groups[0]["lr"])
    for i in job.iterations(4):
        optimizer.zero_grad()
        loss = loss_of(ddp(job.batch() * (1.0 / i if rank == 0 else float(i))))
        loss.backward()
        job.step(optimizer)
        scheduler.step(loss.item())  # FAULT DIV-15


@row("DIV-16", ranks=[1], names=["re:ema|teacher"], cause=r"\bema\b|decay")
def teacher_average_with_another_decay(rank, world, job):
    ddp = job.wrap(Pair())
    ema = [p.detach().clone() for p in ddp.parameters()]
    for index, average in enumerate(ema):
        job.watch("ema.%d" % index, lambda average=average: average)
    optimizer = sgd(ddp)
    decay = 0.9 if rank == 0 else 0.5
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)
        for average, parameter in zip(ema, ddp.parameters()):
            average.lerp_(parameter.detach(), 1 - decay)  # FAULT DIV-16


class Coder(nn.Module):
    def __init__(self, order):
        super().__init__()
        for name in order:
            self.add_module(name, linear())  # FAULT DIV-17

    def forward(self, x):
        return self.dec(self.enc(x))


@row("DIV-17", ranks=[1], names=["enc.weight", "dec.weight"], iteration=0, cause=r"order")
def registered_in_another_order(rank, world, job):
    module = Coder(["enc", "dec"] if rank == 0 else ["dec", "enc"])
    ddp = job.wrap(module)  # FAULT DIV-17
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)


def train_batch_norm(job, **options):
    ddp = job.wrap(batch_norm_net(), **options)  # FAULT DIV-19  # FAULT DIV-20
    job.watch_buffers(ddp.module)
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)


@row("DIV-19", names=["1.running_mean"], cause=r"broadcast_buffers|buffers? differ")
def batch_norm_without_broadcast(rank, world, job):
    train_batch_norm(job, broadcast_buffers=False)


@row("DIV-20", names=["1.running_mean"], cause=r"broadcast_buffers|buffers? differ")
def batch_norm_read_after_forward(rank, world, job):
    train_batch_norm(job)


@row("DIV-21", ranks=[1], iteration=2, names=["teacher.weight"], cause=r"differ|ulp|not deterministic")
def replicated_parameter_one_ulp_off(rank, world, job):
    # What a kernel with atomics does to a tensor that each rank computes for itself.
    ddp, optimizer = teacher_and_student(job)
    for i in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        if rank == 1 and i == 2:
            value = ddp.module["teacher"].weight.data.view(-1)[5:6]
            value.copy_(torch.nextafter(value, torch.tensor([10.0])))  # FAULT DIV-21
        job.step(optimizer)


@row("DIV-22", ranks=[1], iteration=3, names=["a.weight", "b.weight"], cause=r"load_state_dict|checkpoint|written")
def checkpoint_loaded_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    best = copy.deepcopy(ddp.module.state_dict())
    for i in job.iterations(3):
        if rank == 1 and i == 3:
            ddp.module.load_state_dict(best)  # FAULT DIV-22
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)


@row("DIV-23", ranks=[1], iteration=3, names=["re:Adam|optimizer"], cause=r"load_state_dict|state.*(differ|loaded)")
def optimizer_state_loaded_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = torch.optim.Adam(ddp.parameters(), lr=0.1)
    saved = None
    for i in job.iterations(3):
        if rank == 1 and i == 3:
            optimizer.load_state_dict(saved)  # FAULT DIV-23
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)
        if i == 1:
            saved = copy.deepcopy(optimizer.state_dict())


@row("DIV-24", ranks=[0], iteration=3, names=["b.weight"], cause=r"swapped|copy_|written")
def averages_not_swapped_back(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    weight = ddp.module.b.weight
    average = weight.detach().clone()
    for i in job.iterations(4):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)
        with torch.no_grad():
            average.lerp_(weight, 0.1)
            if rank == 0 and i == 2:
                weight.copy_(average)  # FAULT DIV-24
                loss_of(ddp.module(job.batch()))


@row("DIV-25", ranks=[1], names=["a.weight", "b.weight"], cause=r"clip|edited|changed after (the )?reduction|modified after")
def gradients_clipped_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        if rank == 1:
            nn.utils.clip_grad_norm_(ddp.parameters(), 0.01)  # FAULT DIV-25
        job.step(optimizer)


@row("DIV-26", ranks=[1], iteration=4, names=["re:Adam|optimizer"], cause=r"\bjoin|number of steps|steps differ")
def adam_after_an_uneven_join(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = torch.optim.Adam(ddp.parameters(), lr=0.1)

    def train():
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)  # FAULT DIV-26

    with ddp.join():
        for _ in job.iterations(3 if rank == 0 else 2):
            train()
    job.iteration = 4
    job.report_progress()
    train()


@row("DIV-27", ranks=[1], iteration=3, names=["spread"], cause=r"copy_|written|replaced")
def buffer_measured_anew_on_one_rank(rank, world, job):
    ddp = job.wrap(ScaledInputs(), forward_sync_buffers=False)
    job.watch_buffers(ddp.module)
    optimizer = sgd(ddp)
    for i in job.iterations(4):
        x = job.batch()
        optimizer.zero_grad()
        loss_of(ddp(x)).backward()
        job.step(optimizer)
        if i == 2 and rank == 1:
            with torch.no_grad():
                ddp.module.spread.copy_(x.square().mean(0).sqrt())  # FAULT DIV-27


@row("DIV-28", ranks=[1], iteration=2, names=["b.weight"], cause=r"written|modified|version")
def written_through_pointer(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for i in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        if rank == 1 and i == 2:
            ddp.module.b.weight.data.fill_(0.25)  # FAULT DIV-28
        job.step(optimizer)


@row("DIV-29", ranks=[0], iteration=3, names=["re:BatchNorm|\\b1\\."], cause=r"\beval|train\(\)")
def left_in_evaluation_on_one_rank(rank, world, job):
    ddp = job.wrap(batch_norm_net())
    optimizer = sgd(ddp)
    for i in job.iterations(4):
        x = job.batch()
        want = local_gradients(copy.deepcopy(ddp.module).train(), lambda module: loss_of(module(x)))
        optimizer.zero_grad()
        loss_of(ddp(x)).backward()
        job.check("gradient of the first layer", ddp.module[0].weight.grad, job.mean_over_ranks(want[0]))
        job.step(optimizer)
        if i == 2 and rank == 0:
            ddp.module.eval()  # FAULT DIV-29
            with torch.no_grad():
                loss_of(ddp.module(x))


@row("DIV-30", ranks=[1], names=["re:AdamW", "re:SGD"], cause=r"class|another optimizer|optimizers? (differ|of)")
def other_optimizer_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=0.1) if rank == 1 else sgd(ddp)  # FAULT DIV-30
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)


@row("DIV-31", ranks=[1], names=["a.weight", "b.weight"], cause=r"groups?\b")
def other_parameter_group_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    names = ["b", "a"] if rank == 1 else ["a", "b"]  # as a set of texts lists them, whose hashes differ between processes
    rates = {name: 0.01 * 10**index for index, name in enumerate(names)}
    optimizer = torch.optim.SGD([{"params": getattr(ddp.module, name).parameters(), "lr": rates[name]} for name in names])
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)  # FAULT DIV-31
