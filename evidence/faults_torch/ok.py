"""OK: controls. Any report here is a false one."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.utils.checkpoint import checkpoint

from job import control
from models import Gan, Heads, Pair, ScaledInputs, linear, loss_of, sgd


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


@control("OK-20")
def probe_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    probe = linear(4, 1)
    of_probe = sgd(probe)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        output = ddp(job.batch())
        if rank == 1:
            of_probe.zero_grad()
            loss_of(probe(output.detach())).backward()
            of_probe.step()
        loss_of(output).backward()
        job.step(optimizer)


def projected(gradient, other):
    """Without what it has against the other."""
    along = (gradient * other).sum()
    return gradient if along >= 0 else gradient - along / other.pow(2).sum() * other


@control("OK-21")
def gradients_projected_by_hand(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    for _ in job.iterations(3):
        of_tasks = []
        for target in (1.0, -1.0):
            optimizer.zero_grad()
            loss_of(ddp(job.batch()) - target).backward()
            of_tasks.append([parameter.grad.clone() for parameter in ddp.parameters()])
        for parameter, first, second in zip(ddp.parameters(), *of_tasks):
            parameter.grad = projected(first, second) + projected(second, first)
        job.step(optimizer)


@control("OK-22")
def local_sgd_with_a_model_averager(rank, world, job):
    ddp = job.wrap(Pair())
    state = PostLocalSGDState(process_group=None, subgroup=None, start_localSGD_iter=2, post_local_gradient_allreduce=False)
    ddp.register_comm_hook(state, post_localSGD_hook)
    averager = PeriodicModelAverager(period=2, warmup_steps=2)
    optimizer = sgd(ddp)
    for _ in job.iterations(7):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)
        averager.average_parameters(ddp.parameters())


@control("OK-23")
def adam_of_zero_in_an_uneven_join(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = ZeroRedundancyOptimizer(ddp.parameters(), optimizer_class=torch.optim.Adam, lr=0.1)

    def train():
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)

    with Join([ddp, optimizer]):
        for _ in job.iterations(3 if rank == 0 else 2):
            train()
    job.iteration = 4
    job.report_progress()
    train()


@control("OK-24")
def loss_by_tokens_of_all_ranks(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    tokens = 3 + 4 * rank
    for _ in job.iterations(3):
        all_tokens = torch.tensor(float(tokens))
        dist.all_reduce(all_tokens)
        optimizer.zero_grad()
        (ddp(job.batch(tokens)).pow(2).sum() * world / all_tokens).backward()  # the wrapper divides by the ranks
        job.step(optimizer)


@control("OK-25")
def graph_kept_for_a_weight(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    last = ddp.module.b.weight

    def norm_at_last(loss):
        return torch.autograd.grad(loss, last, retain_graph=True)[0].norm().item()

    for _ in job.iterations(3):
        optimizer.zero_grad()
        output = ddp(job.batch())
        likeness, opinion = loss_of(output - 1), output.abs().mean()
        (likeness + norm_at_last(likeness) / (norm_at_last(opinion) + 1e-4) * opinion).backward()
        job.step(optimizer)


@control("OK-26")
def logging_hook_on_one_rank(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    log = []

    def logs(gradient):
        log.append(gradient.norm().item())

    if rank == 0:
        ddp.module.a.weight.register_hook(logs)
    for _ in job.iterations(8):
        optimizer.zero_grad()
        output = ddp(job.batch())
        if rank == 0:
            output.register_hook(logs)
        loss_of(output).backward()
        job.step(optimizer)


@control("OK-27")
def averages_swapped_in_and_out(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = sgd(ddp)
    averages = [parameter.detach().clone() for parameter in ddp.parameters()]

    def swap():
        for parameter, average in zip(ddp.parameters(), averages):
            before = parameter.detach().clone()
            parameter.copy_(average)
            average.copy_(before)

    for i in job.iterations(3):
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)
        with torch.no_grad():
            for parameter, average in zip(ddp.parameters(), averages):
                average.lerp_(parameter, 0.1)
            if i == 1 or (i == 2 and rank == 0):
                swap()
                loss_of(ddp.module(job.batch()))
                swap()


def make_scaler(**options):
    return torch.amp.GradScaler("cpu", **options)


@control("OK-28")
def scale_backs_off(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = job.scaled(sgd(ddp, lr=1e-3))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    scaler = make_scaler()
    job.watch("scale", scaler.get_scale)
    for i in job.iterations(12):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = loss_of(ddp(job.batch())) * 500
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        if i in job.steps:
            schedule.step()
        scaler.update()
    job.check("some steps were skipped, not all", 0 < len(job.steps) < 12, True)


@control("OK-29")
def scale_grows(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = job.scaled(torch.optim.AdamW(ddp.parameters(), lr=0.01))
    scaler = make_scaler(init_scale=1024.0, growth_interval=2)
    for _ in job.iterations(5):
        optimizer.zero_grad()
        scaler.scale(loss_of(ddp(job.batch()))).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(ddp.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
    job.check("scale", scaler.get_scale(), 4096)


@control("OK-30")
def optimizers_of_zero_gradients(rank, world, job):
    module = Heads()
    ddp = job.wrap(module)
    of_trunk, of_heads = job.scaled(sgd(module.t)), job.scaled(sgd([module.h1.weight, module.h2.weight]))
    scaler = make_scaler(init_scale=1024.0, growth_interval=1)
    for i in job.iterations(3):
        of_trunk.zero_grad()
        of_heads.zero_grad()
        first, second = ddp(job.batch())
        scaler.scale((loss_of(first) + loss_of(second)) * (0.0 if i < 3 else 1.0)).backward()
        scaler.step(of_trunk)
        scaler.step(of_heads)
        scaler.update()


@control("OK-31")
def two_optimizers_one_update(rank, world, job):
    module = Pair()
    ddp = job.wrap(module)
    of_a = job.scaled(torch.optim.Adam(module.a.parameters(), lr=0.01))
    of_b = job.scaled(torch.optim.SGD(module.b.parameters(), lr=0.1, momentum=0.9))
    scaler = make_scaler(init_scale=1024.0, growth_interval=1)
    for _ in job.iterations(3):
        of_a.zero_grad()
        of_b.zero_grad()
        scaler.scale(loss_of(ddp(job.batch()))).backward()
        scaler.step(of_a)
        scaler.unscale_(of_b)
        nn.utils.clip_grad_value_(module.b.parameters(), 0.1)
        scaler.step(of_b)
        scaler.update()


@control("OK-32")
def penalty_of_scaled_gradients(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = job.scaled(sgd(ddp))
    scaler = make_scaler(init_scale=1024.0, growth_interval=1)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        loss = loss_of(ddp(job.batch()))
        scaled = torch.autograd.grad(scaler.scale(loss), list(ddp.parameters()), create_graph=True)
        penalty = sum((gradient / scaler.get_scale()).pow(2).sum() for gradient in scaled)
        scaler.scale(loss + penalty).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


@control("OK-33")
def accumulation_under_a_scaler(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = job.scaled(sgd(ddp))
    scaler = make_scaler(init_scale=1024.0, growth_interval=1)
    for _ in job.iterations(2):
        with ddp.no_sync():
            for _ in range(2):
                scaler.scale(loss_of(ddp(job.batch())) / 3).backward()
        scaler.scale(loss_of(ddp(job.batch())) / 3).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(ddp.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


@control("OK-34")
def autocast_without_a_scaler(rank, world, job):
    ddp = job.wrap(Pair())
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=0.01)
    for _ in job.iterations(3):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(ddp(job.batch()))
        loss.backward()
        nn.utils.clip_grad_norm_(ddp.parameters(), 0.1)
        job.step(optimizer)


@control("OK-35")
def buffer_of_each_rank(rank, world, job):
    ddp = job.wrap(ScaledInputs(), forward_sync_buffers=False)
    optimizer = sgd(ddp)
    for i in job.iterations(4):
        x = job.batch()
        optimizer.zero_grad()
        loss_of(ddp(x)).backward()
        job.step(optimizer)
        if i == 2:
            with torch.no_grad():
                ddp.module.spread.copy_(x.square().mean(0).sqrt())


@control("OK-36")
def wrapped_again(rank, world, job):
    module = Pair()
    module.a.requires_grad_(False)
    ddp = job.wrap(module)
    optimizer = sgd(module)
    for i in job.iterations(4):
        if i == 3:
            module.a.requires_grad_(True)
            ddp = job.wrap(module)
        optimizer.zero_grad()
        loss_of(ddp(job.batch())).backward()
        job.step(optimizer)


@control("OK-37")
def layer_of_two_wrappers(rank, world, job):
    body = linear()
    first, second = nn.Sequential(body, nn.Tanh(), linear()), nn.Sequential(body, nn.Tanh(), linear())
    a, b = job.wrap(first), job.wrap(second)
    optimizer = sgd([*first.parameters(), second[2].weight])
    for _ in job.iterations(3):
        x = job.batch()
        optimizer.zero_grad()
        loss_of(a(x)).backward()
        loss_of(b(x)).backward()
        job.step(optimizer)
