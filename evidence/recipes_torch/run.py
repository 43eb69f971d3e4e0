#!/usr/bin/env python3
"""The recipes `gan`, `deep-supervision`, `distill` and `charlm` in their forms on PyTorch's DistributedDataParallel: how does each end?

    pip install torch
    evidence/recipes_torch/run.py                          # a table in Markdown, as docs/recipes.md shows it
    evidence/recipes_torch/run.py gan two-forwards -v      # one form, with the whole texts

Two ranks over Gloo, six steps. A form ends in an error (in which step, and whether an optimizer had stepped since the faulty backward), or its
replicas are equal or not. Where they are equal, its parameters are compared with those of a training in one process that adds up the same
losses of both halves of a batch: this is what the form was meant to compute. The networks are those of tests/reference
(generate_recipes.py, generate_charlm_distill.py).
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import sys
import tempfile
from contextlib import nullcontext
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests/reference"))
from digits import DigitsNet  # noqa: E402
from generate_charlm_distill import GPT, Student  # noqa: E402
from generate_recipes import Discriminator, Generator, called, fill, fill_parameters  # noqa: E402

STEPS, RANKS, BATCH = 6, 2, 16


class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator, self.discriminator, self.perception = Generator(), Discriminator(), DigitsNet()
        fill_parameters(self.generator, 0)
        fill_parameters(self.discriminator, 100)
        fill_parameters(self.perception, 200)
        self.perception.requires_grad_(False)

    def forward(self, part, images, labels, noise, fake=None):
        if part == "images":
            return self.generator(noise, labels)
        if part == "discriminator":
            return of_discriminator(self.discriminator, images, fake)
        return of_generator(self.discriminator, self.perception, images, fake)


def of_discriminator(discriminator, images, fake):
    return called(discriminator(images)[1], 0.9) + called(discriminator(fake)[1], 0)


def of_generator(discriminator, perception, images, fake):
    with torch.no_grad():
        of_real, _ = discriminator(images)
    of_fake, logits = discriminator(fake)
    return (called(logits, 1) + 2 * F.mse_loss(of_fake.mean(0), of_real.mean(0))
            + 0.1 * F.mse_loss(perception.features(fake), perception.features(images)))


class UNet(nn.Module):
    def __init__(self, weights=None):
        super().__init__()
        self.down_fine, self.down_middle, self.bottom = (nn.Conv2d(a, b, 3, padding=1) for a, b in ((1, 8), (8, 16), (16, 32)))
        self.up_middle, self.up_fine = nn.Conv2d(48, 16, 3, padding=1), nn.Conv2d(24, 8, 3, padding=1)
        self.head_fine, self.head_middle, self.head_coarse = nn.Conv2d(8, 1, 1), nn.Conv2d(16, 1, 1), nn.Conv2d(32, 1, 1)
        fill_parameters(self, 0)
        values = torch.tensor([1, 0.5, 0.25])
        if weights == "buffer":
            self.register_buffer("weights", values)
        if weights == "parameter":
            self.weights = nn.Parameter(values)

    def forward(self, x):
        fine = F.relu(self.down_fine(x))
        middle = F.relu(self.down_middle(F.max_pool2d(fine, 2)))
        coarse = F.relu(self.bottom(F.max_pool2d(middle, 2)))
        again = F.relu(self.up_middle(torch.cat([F.interpolate(coarse, scale_factor=2), middle], 1)))
        last = F.relu(self.up_fine(torch.cat([F.interpolate(again, scale_factor=2), fine], 1)))
        return self.head_fine(last), self.head_middle(again), self.head_coarse(coarse)


class Wrappers:
    """DDP on a rank; in the one process of the reference nothing is wrapped, and gradients are those of the mean over both halves."""

    def __init__(self, rank):
        self.rank = rank

    def wrap(self, module, **options):
        return module if self.rank is None else DDP(module, **options)

    def parts(self, *tensors):
        ranks = range(RANKS) if self.rank is None else [self.rank]
        return [tuple(t[r::RANKS].contiguous() for t in tensors) for r in ranks]


def gan(form, wrappers, progress):
    net = Gan()
    if form == "two-wrappers":
        generator, discriminator = wrappers.wrap(net.generator), wrappers.wrap(net.discriminator)

        def ddp(part, images, labels, noise, fake=None):
            if part == "images":
                return generator(noise, labels)
            if part == "discriminator":
                return of_discriminator(discriminator, images, fake)
            return of_generator(discriminator, net.perception, images, fake)
    else:
        ddp = wrappers.wrap(net, find_unused_parameters=form == "find-unused")
    for_generator = torch.optim.Adam(net.generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    for_discriminator = torch.optim.Adam(net.discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))

    # Lightning's toggle_optimizer: in an optimizer's turn the parameters of the other require no grad.
    def toggle(other, require):
        if form == "toggle":
            other.requires_grad_(require)

    for step in range(STEPS):
        progress(step, "the discriminator's backward")
        parts = wrappers.parts(fill(2000 + step, (BATCH, 1, 8, 8), 0.5).float() + 0.5, (torch.arange(BATCH) + step) % 10,
                               fill(1000 + step, (BATCH, 16), 1.0).float())
        with torch.set_grad_enabled(form != "two-forwards"):
            made = [ddp("images", *part) for part in parts]
        toggle(net.generator, False)
        for_discriminator.zero_grad()
        keep = form in ("failing", "no-detach")
        loss = sum(ddp("discriminator", *part, fake if form == "no-detach" else fake.detach()) for part, fake in zip(parts, made))
        (loss / len(parts)).backward(retain_graph=keep)
        for_discriminator.step()
        toggle(net.generator, True)
        progress(step, "the generator's part")
        toggle(net.discriminator, False)
        for_generator.zero_grad()
        if form == "two-forwards":
            made = [ddp("images", *part) for part in parts]
        (sum(ddp("generator", *part, fake) for part, fake in zip(parts, made)) / len(parts)).backward()
        for_generator.step()
        toggle(net.discriminator, True)
    return [*net.generator.parameters(), *net.discriminator.parameters()]


def deep_supervision(form, wrappers, progress):
    net = UNet({"weights-in-a-buffer": "buffer", "weights-in-a-parameter": "parameter"}.get(form))
    ddp = wrappers.wrap(net, find_unused_parameters=form == "extra-backward-find-unused")
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    constant = [1, 0.5, 0.25]
    for step in range(STEPS):
        progress(step, "forward and backward")
        optimizer.zero_grad()
        loss = 0
        parts = wrappers.parts(fill(2000 + step, (BATCH, 1, 16, 16), 1.0).float())
        for images, in parts:
            masks = (images > 0).float()
            outputs = ddp(images)
            if form.startswith("extra-backward"):
                (outputs[2].sum() / len(parts)).backward(retain_graph=True)
            weights = constant
            if form == "weights-in-a-buffer":
                weights = net.weights
            if form == "weights-in-a-parameter":
                weights = [weight.item() for weight in net.weights]
            count = 2 if form == "left-out" or form.startswith("extra-backward") else 3
            loss = loss + sum(weights[i] * F.binary_cross_entropy_with_logits(
                outputs[i], F.interpolate(masks, size=outputs[i].shape[2:])) for i in range(count))
        (loss / len(parts)).backward()
        progress(step, "the optimizer's step")
        optimizer.step()
    return list(net.parameters())


class TeacherStudent(nn.ModuleDict):
    def __init__(self):
        super().__init__({"teacher": DigitsNet(), "student": Student()})
        fill_parameters(self, 0)
        self["teacher"].requires_grad_(False)

    def forward(self, images):
        return self["teacher"](images), self["student"](images)


def distillation_loss(teacher, student, labels, temperature=4, soft=0.7):
    divergence = F.kl_div(F.log_softmax(student / temperature, 1), F.softmax(teacher / temperature, 1), reduction="batchmean")
    return divergence * (soft * temperature * temperature) + F.cross_entropy(student, labels) * (1 - soft)


def distill(form, wrappers, progress):
    pair = TeacherStudent()
    if form == "student-alone":
        student = wrappers.wrap(pair["student"])

        def both(images):
            return pair["teacher"](images), student(images)
    else:
        whole = wrappers.wrap(pair)
        # The module called directly goes round the wrapper's own forward.
        both = whole if form == "whole-module" else pair
    optimizer = torch.optim.SGD(pair["student"].parameters(), lr=0.05, momentum=0.9)
    for step in range(STEPS):
        progress(step, "forward and backward")
        optimizer.zero_grad()
        parts = wrappers.parts(fill(2000 + step, (BATCH, 1, 8, 8), 0.5).float() + 0.5, (torch.arange(BATCH) + step) % 10)
        # A backward in no_sync makes local what a call round the wrapper makes local anyway.
        local = whole.no_sync() if form == "local-gradients" and wrappers.rank is not None else nullcontext()
        with local:
            loss = sum(distillation_loss(*both(images), labels) for images, labels in parts) / len(parts)
            loss.backward()
        if form in ("loss-all-reduce", "local-gradients") and wrappers.rank is not None:
            dist.all_reduce(loss.detach(), op=dist.ReduceOp.SUM)
        progress(step, "the optimizer's step")
        optimizer.step()
    return list(pair["student"].parameters())


def charlm(form, wrappers, progress):
    assert form == "default"
    letters, block, micro_batches = 40, 16, 2
    net = GPT(letters, block, 32, 4, 2)
    fill_parameters(net, 0)
    model = wrappers.wrap(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.01)
    for step in range(STEPS):
        progress(step, "forward and backward")
        optimizer.zero_grad()
        windows = (torch.arange(BATCH)[:, None] * 7 + torch.arange(block + 1) * (step + 3)) % letters
        for text, in wrappers.parts(windows):
            for i, part in enumerate(text.chunk(micro_batches)):
                local = model.no_sync() if i + 1 < micro_batches and wrappers.rank is not None else nullcontext()
                with local:
                    loss = F.cross_entropy(model(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten())
                    (loss / micro_batches / (RANKS if wrappers.rank is None else 1)).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        progress(step, "the optimizer's step")
        optimizer.step()
    return list(net.parameters())


RECIPES = {
    "gan": (gan, ["toggle", "failing", "find-unused", "two-forwards", "two-wrappers", "no-detach"]),
    "deep-supervision": (deep_supervision, ["all-scales", "left-out", "weights-in-a-buffer", "weights-in-a-parameter", "extra-backward",
                                            "extra-backward-find-unused"]),
    "distill": (distill, ["whole-module", "student-alone", "child-called", "loss-all-reduce", "local-gradients"]),
    "charlm": (charlm, ["default"]),
}


def run_rank(recipe, form, rank, folder):
    output = os.open(os.path.join(folder, f"stderr{rank}"), os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS, timeout=timedelta(seconds=20))
    at = [0, ""]

    def progress(step, what):
        at[:] = [step + 1, what]

    result = {}
    try:
        flat = torch.cat([p.detach().flatten() for p in RECIPES[recipe][0](form, Wrappers(rank), progress)])
        gathered = [torch.empty_like(flat) for _ in range(RANKS)]
        dist.all_gather(gathered, flat)
        result["equal"] = all(torch.equal(each, flat) for each in gathered)
        if rank == 0:
            torch.save(flat, os.path.join(folder, "parameters"))
    except Exception as error:  # what PyTorch reports
        result.update(error=str(error), step=at[0], where=at[1])
    with open(os.path.join(folder, f"result{rank}"), "w") as file:
        json.dump(result, file)


def run(recipe, form, verbose):
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("fork")
        ranks = [context.Process(target=run_rank, args=(recipe, form, rank, folder)) for rank in range(RANKS)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        results = [json.load(open(os.path.join(folder, f"result{rank}"))) for rank in range(RANKS)]
        if verbose:
            print(*(json.dumps(result, indent=1) for result in results), *(open(os.path.join(folder, f"stderr{r}")).read() for r in range(RANKS)),
                  sep="\n")
        first = results[0]
        warned = "did not find any unused parameters" in open(os.path.join(folder, "stderr0")).read()
        if "error" in first:
            return f"step {first['step']}, {first['where']}: “{first['error'].split('. ')[0].splitlines()[0]}”"
        words = "replicas equal" if first["equal"] else "no error, and the replicas DIFFER"
        if first["equal"]:
            torch.manual_seed(0)
            wanted = torch.cat([p.detach().flatten() for p in RECIPES[recipe][0](form, Wrappers(None), lambda *_: None)])
            found = torch.load(os.path.join(folder, "parameters"))
            # Six steps of Adam in float32: what rounding does is far below, a wrong gradient far above.
            close = (wanted - found).abs().max().item() < 1e-3
            words += ", as in one process" if close else f", and NOT what one process computes (by {(wanted - found).abs().max():.2g})"
        return words + (", with the warning that no parameter was unused" if warned else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", nargs="?", choices=list(RECIPES))
    parser.add_argument("form", nargs="?")
    parser.add_argument("-v", "--verbose", action="store_true")
    given = parser.parse_args()
    print(f"PyTorch {torch.__version__.split('+')[0]}, Gloo, {RANKS} ranks, {STEPS} steps\n\n| recipe | form | how it ends on PyTorch |\n|---|---|---|")
    for recipe, (_, forms) in RECIPES.items():
        for form in forms:
            if given.recipe in (None, recipe) and given.form in (None, form):
                print(f"| {recipe} | `{form}` | {run(recipe, form, given.verbose)} |", flush=True)


if __name__ == "__main__":
    main()
