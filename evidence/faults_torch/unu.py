"""UNU: a parameter never becomes ready."""
import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

from job import row
from models import Gan, Gate, Heads, Pair, linear, local_gradients, loss_of, sgd

NEVER_CALLED = r"never called|not called|was skipped"
CUT = r"\bdetach"
NO_GRAD = r"no_grad"


def train(job, module, iterations=3, loss=loss_of, **options):
    ddp = job.wrap(module, **options)
    optimizer = sgd(ddp)
    for _ in job.iterations(iterations):
        optimizer.zero_grad()
        loss(ddp(job.batch())).backward()
        job.step(optimizer)


class Auxiliary(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = linear()
        self.b = linear()  # FAULT UNU-01  # FAULT UNU-02

    def forward(self, x):
        return self.a(x)  # FAULT UNU-01  # FAULT UNU-02


@row("UNU-01", names=["b.weight"], cause=NEVER_CALLED)
def module_never_called(rank, world, job):
    train(job, Auxiliary())


@row("UNU-02", names=["b.weight"], cause=NEVER_CALLED)
def module_never_called_in_the_only_iteration(rank, world, job):
    train(job, Auxiliary(), iterations=1)


@row("UNU-04", names=["h2.weight"], cause=r"output\W*(#|number|index)?\s*1\b.*(loss|dropped)")
def output_not_in_loss(rank, world, job):
    train(job, Heads(), loss=lambda outputs: loss_of(outputs[0]))  # FAULT UNU-04


class Box:
    """A container that PyTorch does not look into."""

    def __init__(self, a, b):
        self.a, self.b = a, b


class BoxedHeads(Heads):
    def forward(self, x):
        return Box(*super().forward(x))


@row("UNU-05", must_work=True)
def hidden_outputs_all_used(rank, world, job):
    train(job, BoxedHeads(), loss=lambda box: loss_of(box.a) + loss_of(box.b), find_unused_parameters=True)  # FAULT UNU-05


@row("UNU-06", names=["h2.weight"], cause=r"output field|Box\.b|field\W+b\b")
def hidden_outputs_one_unused(rank, world, job):
    train(job, BoxedHeads(), loss=lambda box: loss_of(box.a))  # FAULT UNU-06


class Detached(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = linear()
        self.b = linear()

    def forward(self, x):
        return self.b(self.a(x).detach())  # FAULT UNU-07


@row("UNU-07", names=["a.weight"], cause=CUT)
def detached_in_forward(rank, world, job):
    train(job, Detached())


class WithoutGrad(Detached):
    def forward(self, x):
        with torch.no_grad():  # FAULT UNU-08
            x = self.a(x)
        return self.b(x)


@row("UNU-08", names=["a.weight"], cause=NO_GRAD)
def no_grad_in_forward(rank, world, job):
    train(job, WithoutGrad())


class Argmax(Detached):
    def forward(self, x):
        choice = self.a(x).argmax(dim=1)  # FAULT UNU-09
        return self.b(nn.functional.one_hot(choice, 4).float())


@row("UNU-09", names=["a.weight"], cause=r"argmax|no derivative|not differentiable")
def argmax_in_forward(rank, world, job):
    train(job, Argmax())


class WeightsByValue(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = linear()
        self.h1 = linear()
        self.h2 = linear()
        self.w = nn.Parameter(torch.tensor([1.0, 0.5]))

    def forward(self, x):
        x = self.t(x)
        w = self.w.tolist()  # FAULT UNU-11
        return w[0] * self.h1(x) + w[1] * self.h2(x)


@row("UNU-11", names=["w"], cause=r"read as (a )?number|register_buffer|by value")
def parameter_read_as_number(rank, world, job):
    train(job, WeightsByValue())


class GanOneForward(Gan):
    def forward(self, noise):
        fake = self.generator(noise)
        return self.discriminator(fake.detach()), self.discriminator(fake)  # FAULT UNU-12


@row("UNU-12", names=["generator.weight"], cause=CUT)
def gan_in_one_wrapper(rank, world, job):
    ddp = job.wrap(GanOneForward())
    of_d, of_g = sgd(ddp.module.discriminator), sgd(ddp.module.generator)
    for _ in job.iterations(2):
        of_detached, of_fake = ddp(job.batch())
        of_d.zero_grad()
        loss_of(of_detached).backward()
        of_g.zero_grad()
        loss_of(of_fake).backward()
        job.step(of_g, of_d)


class GanTwoForwards(Gan):
    def forward(self, noise, phase):
        with torch.no_grad() if phase == "D" else contextlib.nullcontext():  # FAULT UNU-13
            fake = self.generator(noise)
        return self.discriminator(fake)


@row("UNU-13", names=["generator.weight"], cause=NO_GRAD)
def gan_with_two_forwards(rank, world, job):
    ddp = job.wrap(GanTwoForwards())
    of_d, of_g = sgd(ddp.module.discriminator), sgd(ddp.module.generator)
    for _ in job.iterations(2):
        for phase, optimizer in (("D", of_d), ("G", of_g)):
            optimizer.zero_grad()
            loss_of(ddp(job.batch(), phase)).backward()
            job.step(optimizer)


@row("UNU-14", names=["generator.weight"], cause=r"requires_grad (is |was )?(false|off)|toggle|frozen (at|in|during)")
def gan_with_toggled_optimizers(rank, world, job):
    ddp = job.wrap(Gan())
    parts = ddp.module.discriminator, ddp.module.generator
    optimizers = [sgd(part) for part in parts]
    for _ in job.iterations(2):
        for part, optimizer in zip(parts, optimizers):
            for other in parts:
                other.requires_grad_(other is part)  # FAULT UNU-14
            optimizer.zero_grad()
            loss_of(ddp(job.batch(), False)).backward()
            job.step(optimizer)


@row("UNU-15", ranks=[1], names=["b.weight"], cause=NEVER_CALLED + r"|branch")
def branch_on_one_rank(rank, world, job):
    ddp = job.wrap(Gate())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch(), rank == 0)).backward()  # FAULT UNU-15
        job.step(optimizer)


@row("UNU-16", ranks=[1], names=["a.weight", "b.weight"], cause=r"loss.*(not connected|does not depend|fresh|constant)")
def fresh_zero_loss_on_one_rank(rank, world, job):
    ddp = job.wrap(Gate())
    optimizer = sgd(ddp)
    for _ in job.iterations(2):
        optimizer.zero_grad()
        loss = loss_of(ddp(job.batch(), True))
        if rank == 1:
            loss = torch.zeros((), requires_grad=True)  # FAULT UNU-16
        loss.backward()
        job.step(optimizer)


class ManyHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = linear()
        self.heads = nn.ModuleList([linear(), linear()])

    def forward(self, x, task):
        return self.heads[task](self.trunk(x))


@row("UNU-17", names=["heads.1.weight"], cause=NEVER_CALLED + r"|last used|alternat")
def heads_by_turns(rank, world, job):
    ddp = job.wrap(ManyHeads())
    optimizer = sgd(ddp)
    for i in job.iterations(4):
        optimizer.zero_grad()
        loss_of(ddp(job.batch(), (i + 1) % 2)).backward()  # FAULT UNU-17
        job.step(optimizer)


@row("UNU-19", names=["b.weight"], iteration=2, cause=r"unused in first iteration, but then got used|first use")
def static_graph_gains_a_parameter(rank, world, job):
    ddp = job.wrap(Gate(), static_graph=True)
    optimizer = sgd(ddp)
    for i in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch(), i >= 2)).backward()  # FAULT UNU-19
        job.step(optimizer)


@row("UNU-20", names=["b.weight"], iteration=2, cause=r"used in first iteration, but then got unused|last use")
def static_graph_loses_a_parameter(rank, world, job):
    ddp = job.wrap(Gate(), static_graph=True)
    optimizer = sgd(ddp)
    for i in job.iterations(4):
        optimizer.zero_grad()
        loss_of(ddp(job.batch(), i < 2)).backward()  # FAULT UNU-20
        job.step(optimizer)


@row("UNU-21", must_work=True)
def static_graph_always_without_one_output(rank, world, job):
    train(job, Heads(), iterations=4, loss=lambda outputs: loss_of(outputs[0]), static_graph=True)  # FAULT UNU-21


@row("UNU-22", names=["b.weight"], cause=r"frozen after|requires_grad (is |was )?(false|off|changed)")
def frozen_after_wrapping(rank, world, job):
    ddp = job.wrap(Gate())
    ddp.module.b.requires_grad_(False)  # FAULT UNU-22
    optimizer = sgd(ddp.module.a)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch(), True)).backward()
        job.step(optimizer)


@row("UNU-23", names=["b.weight"], cause=r"replaced|exists twice|not the object that was wrapped")
def replaced_after_wrapping(rank, world, job):
    ddp = job.wrap(Gate())
    torch.manual_seed(7)
    ddp.module.b = linear()  # FAULT UNU-23
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch(), True)).backward()
        job.step(optimizer)


class Distillation(nn.Module):
    def __init__(self):
        super().__init__()
        self.teacher = linear()
        self.student = linear()

    def forward(self, x):
        with torch.no_grad():  # FAULT UNU-24
            target = self.teacher(x)
        return self.student(x) - target


@row("UNU-24", names=["teacher.weight"], cause=NO_GRAD + r"|not frozen")
def teacher_not_frozen(rank, world, job):
    train(job, Distillation())


class KeptCopy(Detached):
    """What a cast cache does when it is filled under no_grad."""

    copy_of_a = None

    def forward(self, x):
        if self.copy_of_a is None:
            with torch.no_grad():  # FAULT UNU-25
                self.copy_of_a = self.a.weight.double()  # FAULT UNU-25
        return nn.functional.linear(x.double(), self.copy_of_a) @ self.b.weight.double()


@row("UNU-25", names=["a.weight"], cause=NO_GRAD + r"|cache|copy")
def copy_made_under_no_grad(rank, world, job):
    train(job, KeptCopy())


class Autocast(Detached):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with torch.no_grad():
                self.a(x)
            return self.b(self.a(x)).float()


@row("UNU-25B", must_work=True)
def cast_cache_filled_under_no_grad(rank, world, job):
    train(job, Autocast())


class ManyLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([linear(64, 64) for _ in range(8)])

    def forward(self, x, skip=None):
        for index, layer in enumerate(self.layers):
            if index != skip:
                x = layer(x)
        return x


@row("UNU-27", names=["layers.5.weight"], iteration=3, cause=r"bucket\W*\d+|" + NEVER_CALLED)
def one_bucket_of_many(rank, world, job):
    torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = 1024
    ddp = job.wrap(ManyLayers(), bucket_cap_mb=0.01)
    optimizer = sgd(ddp)
    for i in job.iterations(5):
        optimizer.zero_grad()
        loss_of(ddp(job.batch(8, 64), 5 if i == 3 else None)).backward()  # FAULT UNU-27
        job.step(optimizer)


class GatedByIndex(Detached):
    """a scores, b works; the best score should say how much of the work counts."""

    def forward(self, x):
        best = self.a(x).topk(1)  # FAULT UNU-28
        return self.b(x) * best.indices.float()  # FAULT UNU-28


@row("UNU-28", names=["a.weight"], cause=r"topk|indices have|no derivative|not differentiable")
def indices_of_topk(rank, world, job):
    train(job, GatedByIndex())


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[1], None  # FAULT UNU-29


class Multiplied(Detached):
    def forward(self, x, plain=False):
        x, y = self.a(x), self.b(x)
        return x * y if plain else Product.apply(x, y)  # FAULT UNU-29


@row("UNU-29", names=["b.weight"], cause=r"Product|returned? (no|None)")
def custom_function_without_a_gradient(rank, world, job):
    ddp = job.wrap(Multiplied())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        before = ddp.module.b.weight.detach().clone()
        local = local_gradients(ddp.module, lambda module: loss_of(module(job.batch(), plain=True)))
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)
        job.check("weight of b", ddp.module.b.weight, before - 0.1 * job.mean_over_ranks(local[1]))


class QuietSegment(Detached):
    def forward(self, x):
        def segment(x):
            with torch.no_grad():  # FAULT UNU-30
                features = self.a(x)
            return self.b(x + features)

        return checkpoint(segment, x, use_reentrant=False)


@row("UNU-30", names=["a.weight"], cause=NO_GRAD)
def no_grad_in_a_checkpoint(rank, world, job):
    train(job, QuietSegment())


class Ordered(nn.Module):
    """Calls its layers in the order of a list of its own."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([linear(), linear()])
        self.order = list(self.layers)

    def forward(self, x):
        for layer in self.order:
            x = layer(x)
        return x


@row("UNU-31", names=["layers.1.weight"], iteration=2, cause=r"replaced|registered nowhere|not registered|not the object that was wrapped")
def layer_replaced_in_a_plain_list(rank, world, job):
    ddp = job.wrap(Ordered())
    optimizer = sgd(ddp)
    for i in job.iterations(4):
        if i == 2:
            ddp.module.order[1] = linear()  # FAULT UNU-31
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)


@row("UNU-32", names=["b.weight"], iteration=4, cause=NEVER_CALLED + r"|last used|not (used )?since|until")
def not_used_any_more(rank, world, job):
    ddp = job.wrap(Gate())
    optimizer = sgd(ddp)
    for i in job.iterations(6):
        optimizer.zero_grad()
        loss_of(ddp(job.batch(), i <= 3)).backward()  # FAULT UNU-32
        job.step(optimizer)


class Contrast(Pair):
    def forward(self, x):
        keys = self.b(x)
        parts = [torch.zeros_like(keys) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, keys)  # FAULT UNU-33
        return self.a(x) @ torch.cat(parts).t()


@row("UNU-33", names=["b.weight"], cause=r"all_gather|collective")
def keys_gathered(rank, world, job):
    train(job, Contrast())


def check_step(job, names, parameters, before, local):
    """Each parameter is to be where its averaged gradient leads."""
    for name, parameter, start, gradient in zip(names, parameters, before, local):
        job.check("weight of " + name, parameter, start - 0.1 * job.mean_over_ranks(gradient))


@row("UNU-34", names=["a.weight", "b.weight"], cause=r"\bitem\b|read as a number|no (parameter|gradient)")
def loss_of_numbers(rank, world, job):
    ddp = job.wrap(Pair())
    parameters = list(ddp.parameters())
    optimizer = sgd(ddp)
    for _ in job.iterations(4):
        before = [parameter.detach().clone() for parameter in parameters]
        local = local_gradients(ddp.module, lambda module: loss_of(module(job.batch())))
        optimizer.zero_grad()
        numbers = [loss_of(ddp(job.batch())).item()]  # FAULT UNU-34
        torch.tensor(numbers, requires_grad=True).mean().backward()
        job.step(optimizer)
        check_step(job, "ab", parameters, before, local)


@row("UNU-35", names=["weight"], cause=CUT)
def wrapper_cut_off(rank, world, job):
    encoder, decoder = job.wrap(linear(), "encoder."), job.wrap(linear(), "decoder.")
    parameters = [*encoder.parameters(), *decoder.parameters()]
    optimizer = sgd(parameters)
    for _ in job.iterations(6):
        before = [parameter.detach().clone() for parameter in parameters]
        local = torch.autograd.grad(loss_of(decoder.module(encoder.module(job.batch()))), parameters)
        optimizer.zero_grad()
        code = encoder(job.batch())
        loss_of(decoder(code.detach())).backward()  # FAULT UNU-35
        job.step(optimizer)
        check_step(job, ["the encoder", "the decoder"], parameters, before, local)
