"""OK: controls. Any report here is a false one."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from job import control
from models import Gan, Heads, Pair, linear, loss_of, sgd


def train(job, module, iterations=3, loss=loss_of, trained=None, **options):
    ddp = job.wrap(module, **options)
    optimizer = sgd(trained if trained is not None else [p for p in module.parameters() if p.requires_grad])
    for _ in job.iterations(iterations):
        optimizer.zero_grad()
        loss(ddp(job.batch())).backward()
        job.step(optimizer)


@control("OK-01")
def dead_relu(rank, world, job):
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), linear())
    with torch.no_grad():
        module[0].bias.fill_(-1000)
    train(job, module)
    job.check("gradient", module[0].weight.grad, torch.zeros(16))


@control("OK-02")
def frozen_before_wrapping(rank, world, job):
    module = Pair()
    module.b.requires_grad_(False)
    train(job, module)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = linear()
        self.decode = linear()
        self.decode.weight = self.encode.weight

    def forward(self, x):
        return self.decode(self.encode(x))


@control("OK-03")
def tied_weights(rank, world, job):
    train(job, Tied())


@control("OK-04")
def accidental_no_sync(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        for model in (ddp.module, ddp.module, ddp):
            loss_of(model(job.batch())).backward()
        job.step(optimizer)


@control("OK-06")
def unused_output_with_find_unused(rank, world, job):
    train(job, Heads(), loss=lambda outputs: loss_of(outputs[0]), find_unused_parameters=True)


def train_gan(job, discriminator_model, generator_model, discriminator, generator, cut):
    of_d, of_g = sgd(discriminator), sgd(generator)
    for _ in job.iterations(3):
        for model, optimizer, is_d in ((discriminator_model, of_d, True), (generator_model, of_g, False)):
            discriminator.zero_grad()
            generator.zero_grad()
            loss_of(model(job.batch(), cut and is_d)).backward()
            job.step(optimizer)


@control("OK-07")
def gan_in_one_wrapper_with_find_unused(rank, world, job):
    gan = Gan()
    ddp = job.wrap(gan, find_unused_parameters=True)
    train_gan(job, ddp, ddp, gan.discriminator, gan.generator, cut=True)


@control("OK-08")
def gan_without_detach(rank, world, job):
    gan = Gan()
    ddp = job.wrap(gan)
    train_gan(job, ddp, ddp, gan.discriminator, gan.generator, cut=False)


@control("OK-09")
def gan_in_two_wrappers(rank, world, job):
    generator = job.wrap(linear(), "generator.")
    discriminator = job.wrap(linear(4, 1), "discriminator.")
    of_d, of_g = sgd(discriminator), sgd(generator)
    for _ in job.iterations(3):
        of_d.zero_grad()
        loss_of(discriminator(generator(job.batch()).detach())).backward()
        job.step(of_d)
        of_g.zero_grad()
        loss_of(discriminator(generator(job.batch()))).backward()
        job.step(of_g)


@control("OK-11")
def two_forwards_one_backward(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        (loss_of(ddp(job.batch())) + loss_of(ddp(2 * job.batch()))).backward()
        job.step(optimizer)


class SharedCheckpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = linear()

    def forward(self, x):
        x = checkpoint(self.a, x, use_reentrant=False)
        return checkpoint(self.a, x, use_reentrant=False)


@control("OK-13")
def checkpointed_shared_module(rank, world, job):
    train(job, SharedCheckpointed())


class Distillation(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({"teacher": linear(), "student": linear()})
        self.parts["teacher"].requires_grad_(False)

    def forward(self, x):
        return self.parts["student"](x) - self.parts["teacher"](x)


@control("OK-14")
def frozen_teacher_in_the_wrapper(rank, world, job):
    module = Distillation()
    train(job, module, trained=module.parts["student"])


@control("OK-15")
def student_wrapped_alone(rank, world, job):
    teacher, student = linear(), linear()
    teacher.requires_grad_(False)
    ddp = job.wrap(student)
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        x = job.batch()
        loss_of(ddp(x) - teacher(x)).backward()
        job.step(optimizer)


class DeepSupervision(Heads):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.tensor([1.0, 0.5]))


@control("OK-16")
def supervision_weights_as_buffer(rank, world, job):
    module = DeepSupervision()
    train(job, module, loss=lambda outputs: sum(w * loss_of(o) for w, o in zip(module.w.tolist(), outputs)))


@control("OK-17")
def uneven_inputs_with_join(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    with ddp.join():
        for _ in job.iterations(3 if rank == 0 else 2):
            optimizer.zero_grad()
            loss_of(ddp(job.batch())).backward()
            job.step(optimizer)


@control("OK-19")
def frozen_teacher_wrapped_alone(rank, world, job):
    teacher = linear().requires_grad_(False)
    student = linear()
    wrapped_teacher, ddp = job.wrap(teacher, "teacher."), job.wrap(student, "student.")
    optimizer = sgd(ddp)
    for _ in job.iterations(2):
        optimizer.zero_grad()
        loss_of(ddp(job.batch()) - wrapped_teacher(job.batch())).backward()
        job.step(optimizer)
