"""TWI: ready twice, more than one backward."""
from torch import nn
from torch.utils.checkpoint import checkpoint

from job import row
from models import Gate, Heads, Pair, linear, loss_of, sgd

SECOND = r"second backward|backward\W+(number\s*)?#?2\b|two backwards|after the reduction"


@row("TWI-01", names=["re:\\b(t|h1)\\.weight"], cause=SECOND)
def two_backwards_of_one_forward(rank, world, job):
    ddp = job.wrap(Heads(), find_unused_parameters=True)
    optimizer = sgd(ddp)
    for _ in job.iterations(2):
        optimizer.zero_grad()
        first, second = ddp(job.batch())
        a, b = loss_of(first), loss_of(second)
        a.backward(retain_graph=True)
        (a + b).backward()  # FAULT TWI-01
        job.step(optimizer)


def backward_on_the_unused_output(job, **options):
    ddp = job.wrap(Heads(), **options)
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        used, unused = ddp(job.batch())
        loss_of(used).backward(retain_graph=True)
        unused.sum().backward()  # FAULT TWI-02  # FAULT TWI-03
        job.step(optimizer)


@row("TWI-02", names=["t.weight"], cause=SECOND)
def unused_output_backward(rank, world, job):
    backward_on_the_unused_output(job)


@row("TWI-03", names=["t.weight", "h2.weight"], cause=SECOND)
def unused_output_backward_with_find_unused(rank, world, job):
    backward_on_the_unused_output(job, find_unused_parameters=True)


@row("TWI-04", names=["b.weight"], cause=r"outside (the |of )?`?forward|not used in forward")
def penalty_outside_forward(rank, world, job):
    ddp = job.wrap(Gate(), find_unused_parameters=True)
    optimizer = sgd(ddp)
    for _ in job.iterations(2):
        optimizer.zero_grad()
        loss = loss_of(ddp(job.batch(), False))
        loss = loss + loss_of(job.batch() @ ddp.module.b.weight)  # FAULT TWI-04
        loss.backward()
        job.step(optimizer)


class Checkpointed(Pair):
    def forward(self, x):
        x = x.requires_grad_()
        return self.b(checkpoint(self.a, x, use_reentrant=True))  # FAULT TWI-05


@row("TWI-05", names=["a.weight"], cause=r"checkpoint|recomput")
def reentrant_checkpoint_with_find_unused(rank, world, job):
    ddp = job.wrap(Checkpointed(), find_unused_parameters=True)
    optimizer = sgd(ddp)
    for _ in job.iterations(2):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)


class SharedCheckpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = linear()

    def inner(self, x):
        return self.a(checkpoint(self.a, x, use_reentrant=True))

    def forward(self, x):
        return checkpoint(self.inner, x.requires_grad_(), use_reentrant=True)  # FAULT TWI-06


@row("TWI-06", names=["a.weight"], cause=r"checkpoint|recomput")
def shared_module_in_nested_checkpoints(rank, world, job):
    ddp = job.wrap(SharedCheckpointed())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)


@row("TWI-08", names=["a.weight", "b.weight"], cause=SECOND)
def two_forwards_two_backwards(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        first = loss_of(ddp(job.batch()))
        second = loss_of(ddp(2 * job.batch()))
        first.backward()
        second.backward()  # FAULT TWI-08
        job.step(optimizer)
