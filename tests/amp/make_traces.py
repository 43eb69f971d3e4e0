#!/usr/bin/env python3
"""Writes traces.json: what torch.amp.GradScaler does, call by call, for traces_test.cpp to replay.

    python3 make_traces.py > traces.json     (PyTorch 2.x, without a GPU)

A sequence is a list of calls on one scaler and on a few SGD optimizers, whose gradients are set by hand. For each call it
holds what came back or the error's words, and the scale and the growth tracker afterwards; after unscale_ the gradients,
after step the parameters. Numbers are exact: those of float32 in the shortest form that gives them back. Sequences of the
kind "device" go through the code for a GPU with tensors of the CPU, those of the kind "fused" through an optimizer that
takes the scale along.
"""
import json
import math
import random
import sys
import warnings

import torch

ERRORS = Exception  # of several kinds; a fused step without gradients, left out below, fails by yet others


def plain(number):
    """As JSON can say it."""
    return number if math.isfinite(number) else str(number)


def as_list(tensor):
    return None if tensor is None else [plain(x) for x in tensor.double().tolist()]


class Player:
    """One scaler with its optimizers, and the record of what is done to them."""

    def __init__(self, kind, options, optimizers):
        self.kind = kind
        self.calls = []
        self.record = {"kind": kind, "options": options, "optimizers": optimizers, "calls": self.calls}
        self.parameters = [[torch.ones(size, dtype=getattr(torch, dtype), requires_grad=True) for size, dtype in parameters]
                           for parameters in optimizers]
        self.optimizers = [torch.optim.SGD(group, lr=0.5, fused=True if kind == "fused" else None) for group in self.parameters]
        self.scaler = None
        self.play("new", lambda: self.make(options))

    def make(self, options):
        self.scaler = torch.amp.GradScaler("cuda" if self.kind == "device" else "cpu", **options)

    def play(self, name, action, *arguments, then=None):
        entry = {"call": name}
        if arguments:
            entry["with"] = list(arguments)
        try:
            result = action()
            if result is not None:
                entry["gives"] = result
            if then:
                entry["leaves"] = then()
        except ERRORS as error:
            entry["error"] = str(error)
        if self.scaler is not None:
            entry["scale"] = plain(self.scaler.get_scale())
            entry["tracker"] = self.scaler._get_growth_tracker()
        self.calls.append(entry)
        return "error" not in entry

    def scale(self, *values):
        if len(values) == 1:
            self.play("scale", lambda: plain(self.scaler.scale(torch.tensor(values[0])).item()), *values)
        else:
            self.play("scale", lambda: [plain(x.item()) for x in self.scaler.scale([torch.tensor(v) for v in values])], *values)

    def gradients(self, which, gradients):
        def put():
            for parameter, gradient in zip(self.parameters[which], gradients):
                parameter.grad = None if gradient is None else torch.tensor([float(x) for x in gradient], dtype=parameter.dtype)
        self.play("gradients", put, which, [g and [plain(float(x)) for x in g] for g in gradients])

    def unscale(self, which):
        self.play("unscale_", lambda: self.scaler.unscale_(self.optimizers[which]), which,
                  then=lambda: [as_list(p.grad) for p in self.parameters[which]])

    def step(self, which):
        def call():
            self.scaler.step(self.optimizers[which])
        self.play("step", call, which, then=lambda: [as_list(p.detach()) for p in self.parameters[which]])

    def update(self, *new_scale):
        self.play("update", lambda: self.scaler.update(*new_scale), *new_scale)

    def set(self, what, value):
        self.play("set_" + what, lambda: getattr(self.scaler, "set_" + what)(value), value)

    def state_dict(self):
        self.play("state_dict", lambda: {k: plain(v) for k, v in self.scaler.state_dict().items()})

    def load(self, state):
        self.play("load_state_dict", lambda: self.scaler.load_state_dict(state), state)


TWO = [[[2, "float32"], [1, "float32"]], [[3, "float32"]]]
HALF = [[[2, "float32"], [2, "float16"]]]
INF = float("inf")


def by_hand():
    """One sequence for each transition and each error."""
    def player(kind="cpu", optimizers=TWO, **options):
        made = Player(kind, options, optimizers)
        yield_to.append(made.record)
        return made
    yield_to = []
    good = [[1024.0, -2048.0], [512.0]]

    for options in ({"growth_factor": 1.0}, {"growth_factor": 0.5}, {"backoff_factor": 1.0}, {"backoff_factor": 2.0}, {"enabled": False, "growth_factor": 1.0}):
        player(**options)
    for call in ("unscale", "step"):  # nothing was scaled yet
        p = player()
        p.gradients(0, good)
        getattr(p, call)(0)
    player().update()
    player().update(4.0)
    p = player()  # the usual way
    p.scale(1.5), p.gradients(0, good), p.unscale(0), p.step(0), p.update(), p.state_dict()
    p = player()  # without unscale_
    p.scale(1.5), p.gradients(0, good), p.step(0), p.update()
    p = player()  # unscale_ twice, and after step
    p.scale(1.5), p.gradients(0, good), p.unscale(0), p.unscale(0), p.step(0), p.unscale(0), p.step(0), p.update(), p.unscale(0)
    p = player()  # update missing
    p.scale(1.5), p.gradients(0, good), p.step(0), p.scale(1.5), p.gradients(0, good), p.step(0)
    p = player()  # no gradients
    p.scale(1.5), p.step(0), p.step(0), p.unscale(0), p.update(), p.gradients(0, good), p.step(0), p.update()
    p = player()  # update without a step
    p.scale(1.5), p.update(), p.gradients(1, [[1.0, 2.0, 3.0]]), p.unscale(1), p.update(), p.update()
    p = player()  # half of the gradients of one optimizer are missing
    p.scale(1.5), p.gradients(0, [None, [INF]]), p.step(0), p.update(), p.scale(1.5)
    for bad in (INF, -INF, float("nan")):
        p = player(init_scale=8.0)
        p.scale(1.0), p.gradients(0, [[1.0, plain(bad)], [2.0]]), p.unscale(0), p.step(0), p.update(), p.scale(1.0)
    p = player(init_scale=4.0, growth_interval=2)  # two optimizers, one of which is skipped
    for bad in (1.0, INF, 1.0, 1.0, 1.0, 1.0):
        p.scale(1.0), p.gradients(0, [[4.0, 8.0], [plain(bad)]]), p.gradients(1, [[4.0, 2.0, 1.0]])
        p.step(0), p.step(1), p.update()
    p = player(optimizers=HALF)
    p.scale(1.0), p.gradients(0, [[1.0, 2.0], [1.0, 2.0]]), p.unscale(0), p.step(0), p.gradients(0, [[1.0, 2.0], None]), p.step(0), p.update()
    for limit in (1e38, 3e38):  # no growth out of float32
        p = player(init_scale=limit, growth_interval=1)
        for _ in range(3):
            p.scale(0.5), p.gradients(0, good), p.step(0), p.update()
    p = player(init_scale=1e-38, growth_interval=1)  # down to zero
    for _ in range(6):
        p.scale(0.5), p.gradients(0, [[INF, 1.0], None]), p.step(0), p.update()
        p.set("backoff_factor", 0.01)
    p = player(enabled=False)
    p.scale(1.5), p.scale(1.5, 2.5), p.gradients(0, good), p.unscale(0), p.unscale(0), p.step(0), p.step(0), p.update(), p.update(3.0), p.state_dict(), p.load({})
    p = player()
    p.load({})
    for early in (True, False):  # loaded before and after the first scale()
        p = player()
        if not early:
            p.scale(1.0)
        p.load({"scale": 0.1, "growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": 2, "_growth_tracker": 1})
        p.state_dict(), p.scale(1.0), p.gradients(0, good), p.step(0), p.update(), p.state_dict()
    p = player(growth_interval=3)  # an interval that the tracker has passed
    for interval in (3, 3, 2, 2, 3, 4):
        p.set("growth_interval", interval), p.scale(1.0), p.gradients(0, good), p.step(0), p.update()
    return yield_to


def gradients_for(rng, parameters, scale):
    bad = rng.random() < 0.25
    result = []
    for size, _ in parameters:
        if rng.random() < 0.08:
            result.append(None)
            continue
        values = [float(torch.tensor(scale * rng.choice([1, -2, 0.5, 0, 3, 0.1]), dtype=torch.float32)) for _ in range(size)]
        result.append([plain(x) for x in values])
    if bad:
        where = rng.randrange(len(result))
        if result[where]:
            result[where][rng.randrange(len(result[where]))] = rng.choice(["inf", "-inf", "nan"])
    return result


def at_random(seed):
    rng = random.Random(seed)
    kind = ("cpu", "device", "fused")[seed % 3]
    # Fused optimizers divide by the scale where others multiply by its inverse: powers of 2 are alike.
    odd = kind != "fused"
    options = {"init_scale": rng.choice([65536.0, 1024.0, 8.0] + [3.0, 0.1] * odd), "growth_interval": rng.choice([1, 2, 3, 2000]),
               "growth_factor": rng.choice([2.0, 2.0] + [1.5] * odd), "backoff_factor": rng.choice([0.5, 0.5] + [0.7] * odd)}
    p = Player(kind, options, TWO)
    careless = rng.random() < 0.5
    for _ in range(rng.randrange(2, 5)):
        calls = [lambda: p.scale(rng.choice([1.0, 0.25, -3.0])) if rng.random() < 0.8 else p.scale(1.0, 2.0)]
        used = [which for which in (0, 1) if rng.random() < 0.8] or [0]
        for which in used:
            calls.append(lambda w=which: p.gradients(w, gradients_for(rng, TWO[w], p.scaler.get_scale())))
        for which in used:
            if rng.random() < 0.4:
                calls.append(lambda w=which: p.unscale(w))
        for which in used:
            calls.append(lambda w=which: p.step(w))
        calls.append(lambda: p.update() if rng.random() < 0.9 else p.update(rng.choice([16.0, 0.5] + [100.0, 0.3] * odd)))
        if rng.random() < 0.2:
            calls.append(lambda: rng.choice([lambda: p.set("growth_factor", 4.0), lambda: p.set("backoff_factor", 0.25),
                                             lambda: p.set("growth_interval", 2), p.state_dict])())
        if careless:  # a call is left out, made twice or moved
            where = rng.randrange(len(calls))
            fault = rng.choice(["drop", "twice", "swap", "none"])
            if fault == "drop":
                del calls[where]
            elif fault == "twice":
                calls.insert(where, calls[where])
            elif fault == "swap":
                other = rng.randrange(len(calls))
                calls[where], calls[other] = calls[other], calls[where]
        for call in calls:
            call()
    p.state_dict()
    return p.record


def is_left_out(record):
    """Whether a fused optimizer steps that has no gradient at all, which PyTorch does not expect: it fails in its own way;
    or by gradients that were stepped by before, which it may or may not have unscaled in place."""
    given = {}
    for call in record["calls"]:
        if call["call"] == "gradients":
            given[call["with"][0]] = any(g is not None for g in call["with"][1])
        if call["call"] in ("step", "unscale_") and not given.get(call["with"][0], False):
            return record["kind"] == "fused"
        if call["call"] == "step" and "error" not in call:
            given[call["with"][0]] = record["kind"] != "fused"
    return False


def main():
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    warnings.simplefilter("ignore")
    sequences = by_hand() + [record for record in map(at_random, range(240)) if not is_left_out(record)]
    lines = [json.dumps(record, separators=(",", ":")) for record in sequences]
    print('{"torch":"%s","sequences":[\n%s\n]}' % (torch.__version__.split("+")[0], ",\n".join(lines)))
    calls = [call for record in sequences for call in record["calls"]]
    print(len(sequences), "sequences,", len(calls), "calls,", sum("error" in call for call in calls), "errors:", file=sys.stderr)
    for text in sorted({call["error"] for call in calls if "error" in call}):
        print(" ", text, file=sys.stderr)


if __name__ == "__main__":
    main()
