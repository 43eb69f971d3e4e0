"""What differs between two results of a program.

Values agree when they are the same to a few roundings of their dtype. Where they are not, the program is run again in PyTorch several
times with every result and gradient moved by a rounding at random: what such runs scatter over is what the program cannot know, and a
difference within a multiple of it is rounding. So is one where the result here is the nearer one to what float64 gives."""
import json

import torch

import torch_side

# Of the element itself.
RELATIVE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.float16: 1 / 512, torch.bfloat16: 1 / 64}
RUNS = 12
SCATTER = 6  # times the largest deviation of a disturbed run
LEAF_SCALE = 2000  # roundings of the largest number in sight, when leaves are moved as well


class Difference:
    def __init__(self, kind, where, torch_says, ours_says):
        self.kind, self.where, self.torch_says, self.ours_says = kind, where, torch_says, ours_says

    def __str__(self):
        return f"{self.kind}: {self.where}\n    PyTorch: {self.torch_says}\n    here:    {self.ours_says}"


def text(entry):
    if entry is None:
        return "nothing"
    values = entry["values"].reshape(-1)[:24].tolist()
    return f"{entry['dtype']} {entry['shape']} {values}" + (" requires grad" if entry["requires_grad"] else "")


def apart(expected, actual):
    """|expected - actual| of each element where they do not agree to a few roundings, 0 where they do; inf where one is not a number."""
    e, a = expected.double(), actual.double()
    if not expected.is_floating_point():
        return (expected != actual).double()
    distance = (e - a).abs()
    distance[(e == a) | (e.isnan() & a.isnan())] = 0
    distance[distance.isnan()] = float("inf")
    # A number below the smallest normal one may become 0 on the way; half types are computed in float, and rounded.
    least = torch.finfo(torch.float64 if expected.dtype == torch.float64 else torch.float32).tiny
    relative = RELATIVE[expected.dtype] * e.abs() + max(least, torch.finfo(expected.dtype).smallest_normal * torch.finfo(expected.dtype).eps)
    distance[(distance <= relative) & e.isfinite()] = 0
    return distance


def entry_difference(where, expected, actual):
    """None, or a difference; a difference of values carries the distances."""
    if expected is None or actual is None:
        if expected is actual:
            return None
        found = Difference("presence", where, text(expected), text(actual))
        found.expected, found.actual = expected and expected["values"], actual and actual["values"]
        return found
    for key in ("dtype", "shape", "requires_grad"):
        if expected[key] != actual[key]:
            return Difference(key, where, text(expected), text(actual))
    distance = apart(expected["values"], actual["values"])
    if not distance.any():
        return None
    found = Difference("value", where, text(expected), text(actual))
    found.distance, found.expected, found.actual = distance, expected["values"], actual["values"]
    return found


def pairs(expected, actual):
    """(path, expected, actual) of each tensor, in the order in which they came to be when there is a trace."""
    for i, (e, a) in enumerate(zip(expected.get("trace", []), actual.get("trace", []))):
        for name in sorted({**e, **a}.keys() - set(expected["unusable"])):
            yield ("trace", i, name), e.get(name), a.get(name)
    for key in ("variables", "gradients"):
        for name in sorted({**expected[key], **actual[key]}.keys() - set(expected["unusable"])):
            yield (key, name), expected[key].get(name), actual[key].get(name)


def refusal_difference(program, expected, actual):
    theirs = {r["line"]: r for r in expected["refusals"]}
    ours = {r["line"]: r for r in actual["refusals"]}
    for line in sorted(set(theirs) ^ set(ours)):
        kind = "accepted here" if line in theirs else "refused here"
        said = [f"{r[line]['kind']}: {r[line]['message']}" if line in r else "accepts" for r in (theirs, ours)]
        found = Difference(kind, f"line {line} ({program['lines'][line]['op']})", *said)
        found.line = line
        return found
    return None


def disturbance(seed, leaves):
    """Moves results and gradients by a rounding at random; inputs of the program only when told."""
    choose = torch.Generator().manual_seed(seed)

    def factor(x):
        step = torch.randint(-1, 2, x.shape, generator=choose).to(x.dtype)
        return 1 + step * torch.finfo(x.dtype).eps

    def disturb(session, line, results):
        if line["op"] == "tensor" and not leaves:
            return
        known = {x.data_ptr() for x in session.variables.values() if x is not None}
        in_place = line["op"].endswith("_") and line["op"] != "requires_grad_"
        for x in results:
            if not isinstance(x, torch.Tensor) or not x.is_floating_point() or x.numel() == 0:
                continue
            if in_place and 0 in x.stride():
                continue
            if in_place or (x._base is None and x.data_ptr() not in known):
                x.data.mul_(factor(x))
            if x.requires_grad and not in_place and line["op"] != "tensor":
                x.register_hook(lambda grad: grad * factor(grad))

    return disturb


def find(result, path):
    for key in path:
        try:
            result = result[key]
        except (KeyError, IndexError):
            return None
    return result


def disturbed_runs(program, leaves, with_trace, kind, kept={}):
    """Those of the last program are kept: each of its tensors asks."""
    key = (json.dumps(program), leaves, with_trace, kind)
    if kept.get("key") != key:
        kept["key"] = key
        kept["runs"] = [torch_side.run(program, disturbance(seed, leaves), with_trace, kind) for seed in range(RUNS)]
    return kept["runs"]


def scatter(program, path, expected, leaves, kind):
    """How far each element of a tensor lies from where it was, in disturbed runs; inf when it comes out of another shape."""
    furthest = torch.zeros_like(expected["values"], dtype=torch.float64)
    for disturbed in disturbed_runs(program, leaves, path[0] == "trace", kind):
        entry = find(disturbed, path)
        if entry is None or entry["shape"] != expected["shape"]:
            return torch.full_like(furthest, float("inf"))
        e, d = expected["values"].double(), entry["values"].double()
        distance = (e - d).abs()
        distance[(e == d) | (e.isnan() & d.isnan())] = 0
        distance[distance.isnan()] = float("inf")
        furthest = torch.maximum(furthest, distance)
    return furthest


def largest(result):
    """The largest finite number in sight, and the coarsest rounding."""
    scale, eps = 0.0, 0.0
    for key in ("variables", "gradients"):
        for entry in result[key].values():
            x = entry["values"]
            if x.is_floating_point() and x.numel():
                eps = max(eps, torch.finfo(x.dtype).eps)
                finite = x[x.isfinite()].double().abs()
                scale = max(scale, finite.max().item() if finite.numel() else 0.0)
    return scale, eps


def exact(program, path, kind=torch_side.Run):
    """What comes out when all that is computed with real numbers is computed in float64."""
    lines = []
    for line in program["lines"]:
        args = line.get("args", {})
        if args.get("dtype") in ("float32", "float16", "bfloat16"):
            args = {**args, "dtype": "float64"}
            if line["op"] == "to":  # from float64 to float64 would be no copy
                args["copy"] = True
        lines.append({**line, "args": args})
    return find(torch_side.run({"id": program["id"], "lines": lines}, with_trace=path[0] == "trace", kind=kind), path)


def is_nearer(program, path, expected, actual, kind):
    """True when what is here is as near to the exact numbers as what PyTorch has."""
    truth = exact(program, path, kind)
    if truth is None or truth["shape"] != expected["shape"]:
        return False
    t, e, a = (entry["values"].double() for entry in (truth, expected, actual))
    ours, theirs = (a - t).abs(), (e - t).abs()
    few = RELATIVE[expected["values"].dtype] * t.abs() if expected["values"].is_floating_point() else 0
    return bool(((ours <= theirs) | (ours <= few) | (e == a) | (e.isnan() & a.isnan())).all())


def is_rounding(program, path, expected, actual, distance, result, kind):
    if is_nearer(program, path, expected, actual, kind):
        return True
    if (distance <= SCATTER * scatter(program, path, expected, leaves=False, kind=kind)).all():
        return True
    scale, eps = largest(result)
    small = (distance <= LEAF_SCALE * eps * scale).all()
    return bool(small and (distance <= SCATTER * scatter(program, path, expected, leaves=True, kind=kind)).all())


def difference(program, expected, actual, allow_rounding=True, kind=torch_side.Run):
    """The first difference, or None. `kind` is the run of PyTorch that gave what is expected: it is asked about roundings."""
    if "crash" in actual:
        return Difference("crash", "end", "", actual["crash"])
    if actual.get("malformed"):
        return Difference("malformed", actual["malformed"], "", "")
    refused = refusal_difference(program, expected, actual)
    for path, e, a in pairs(expected, actual):
        if refused and (path[0] != "trace" or path[1] >= refused.line):
            return refused
        found = entry_difference(" ".join(map(str, path)), e, a)
        if found and found.kind == "value" and allow_rounding and is_rounding(program, path, e, a, found.distance, expected, kind):
            continue
        if found:
            return found
    return refused
