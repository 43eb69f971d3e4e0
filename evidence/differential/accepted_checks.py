"""What entries of accepted.json ask of a program and of the difference that it shows (`check`); accepted.py says when.

Each takes the program, the difference, and the program that runs it here."""
import functools
import math

import torch

import compare
import recurrences
import torch_side
import variants

CHECKS = {}


def is_nearer(program, found):
    """Element by element: what is here is as near to what float64 gives as what PyTorch has."""
    words = found.where.split()
    path = (words[0], int(words[1]), words[2]) if words[0] == "trace" else tuple(words)
    truth = compare.exact(program, path)
    if truth is None or truth["values"].shape != found.expected.shape:
        return torch.zeros(found.expected.shape, dtype=torch.bool)
    t, e, a = (x.double() for x in (truth["values"], found.expected, found.actual))
    return (a - t).abs() <= (e - t).abs()


def after(lines):
    """PyTorch when it has run these lines."""
    running = torch_side.Run()
    for line in lines:
        running.add(line)
    return running


def inputs_of(program, found):
    """The tensors, or None, that the line at which they differ gets."""
    number = int(found.where.split()[1])
    variables = after(program["lines"][:number]).session.variables
    return [None if name is None else variables[name] for name in program["lines"][number]["in"]]


def lines_with_inputs(program):
    """Each line with its inputs in PyTorch, as they are before it runs; None for one that is not there."""
    running = torch_side.Run()
    for line in program["lines"]:
        yield line, [running.session.variables.get(name) for name in line.get("in", [])]
        running.add(line)


def is_recording(program, number):
    """Whether a line of a program is run with gradients enabled."""
    modes = [True]
    for line in program["lines"][:number]:
        if line["op"] == "set_grad_enabled":
            modes.append(line["args"]["mode"])
        elif line["op"] == "restore_grad_mode":
            modes.pop()
    return modes[-1]


def check(function):
    CHECKS[function.__name__] = function
    return function


@check
def has_an_older_view(program, found, ours):
    """requires_grad_() of a tensor whose elements another one has; of those that a line is about, where it shows at a line."""
    running, older = torch_side.Run(), set()
    for line in program["lines"]:
        variables = running.session.variables
        x = variables.get(line["in"][0]) if line["op"] == "requires_grad_" else None
        if x is not None:
            memory = x.untyped_storage().data_ptr()
            older |= {name for name, y in variables.items() if y is not None and y is not x and y.untyped_storage().data_ptr() == memory}
        running.add(line)
    words = found.where.split()
    if words[0] not in ("line", "trace"):
        return bool(older)
    line = program["lines"][int(words[1])]
    return bool(older & set(line.get("in", []) + line.get("out", [])))


@check
def needs_less(program, found, ours):
    """PyTorch refuses because of what it kept; where it is made to keep copies, and its graphs, it gives what is given here."""
    lines = [{**line, "args": {**line.get("args", {}), "retain_graph": True}} if line["op"] in ("backward", "grad") else line
             for line in program["lines"]]
    keeping, here = {**program, "lines": lines}, ours.run([program])[0]
    # Not allow_mutation_on_saved_tensors(), which does not see what is written through a view.
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x):
        left = [compare.difference(keeping, torch_side.run(keeping, kind=kind), here, kind=kind) for kind in (torch_side.Run, recurrences.Run)]
    # PyTorch may still refuse, for another reason, or have a history that leads to zeros.
    return any(found is None or found.kind in ("accepted here", "requires_grad", "presence") for found in left)


@check
def has_no_history(program, found, ours):
    """A gradient with a history here, and none in PyTorch: so nothing depends on what it came from."""
    return found.ours_says.endswith("requires grad")


@check
def is_nan_there(program, found, ours):
    """Wherever they differ, PyTorch has a NaN."""
    return bool(found.expected[found.distance > 0].isnan().all())


@check
def is_nothing_there(program, found, ours):
    """Wherever they differ, PyTorch has a NaN or 0."""
    theirs = found.expected[found.distance > 0]
    return bool((theirs.isnan() | (theirs == 0)).all())


@check
def has_written_a_copy(program, found, ours):
    """Where the result is copied into its operand, PyTorch gives what is given here."""
    lines = []
    for i, line in enumerate(program["lines"]):
        if line["op"] not in ("exp_", "sqrt_", "sigmoid_", "tanh_"):
            lines.append(line)
            continue
        x, copied, result = line["in"][0], f"copied{i}", f"result{i}"
        lines += [{"op": "clone", "in": [x], "out": [copied]}, {"op": line["op"][:-1], "in": [copied], "out": [result]},
                  {"op": "copy_", "in": [x, result]}]
    rewritten = {**program, "lines": lines}
    return compare.difference(rewritten, torch_side.run(rewritten), ours.run([rewritten])[0]) is None


@check
def counts(program, found, ours):
    """A norm of order 0."""
    return any(0 in (line.get("args", {}).get("p"), line.get("args", {}).get("ord")) for line in program["lines"])


@check
def is_a_rounding_of_one(program, found, ours):
    """To a few roundings of 1, times the cube of an input of at most 10; or a NaN there; or the nearer one to what float64 gives."""
    fits = (found.distance <= 1000 * torch.finfo(torch.float32).eps) | found.expected.isnan()
    return bool((fits | is_nearer(program, found)).all())


@check
def is_nan_here(program, found, ours):
    return bool(found.actual[found.distance > 0].isnan().all())


@check
def meets_below_zero(program, found, ours):
    """uint8 with a number below 0, written or in a tensor."""
    values = tensors(program)
    return any(isinstance(line.get("args", {}).get("other"), (int, float)) and line["args"]["other"] < 0
               for line in program["lines"]) or (any(x.dtype == torch.uint8 for x in values)
                                                 and any(x.dim() == 0 and not x.is_floating_point() and x.item() < 0 for x in values))


def tensors(program):
    """The values that the program's names stand for in PyTorch at its end."""
    return [entry["values"] for entry in torch_side.run(program)["variables"].values()]


@check
def has_nan(program, found, ours):
    return any(x.is_floating_point() and x.isnan().any() for x in tensors(program))


@check
def is_infinite(program, found, ours):
    return any(x.is_floating_point() and x.isinf().any() for x in tensors(program))


@check
def has_a_rounding(program, found, ours):
    """A sum or mean that is no more than a rounding of what was added."""
    made = [x for x in tensors(program) if x.is_floating_point() and x.numel()]
    return any(((x != 0) & (x.abs() < 8 * torch.finfo(x.dtype).eps)).any() for x in made)


@check
def copies_itself(program, found, ours):
    """A copy_ between two names of the same elements."""
    running = after(program["lines"][:-1])
    line = program["lines"][-1]
    to, of = (running.session.variables.get(name) for name in line["in"][:2])
    return line["op"] == "copy_" and to is not None and of is not None and (to.data_ptr(), to.shape, to.stride(), to.dtype) == (
        of.data_ptr(), of.shape, of.stride(), of.dtype)


@check
def asks_for_result(program, found, ours):
    """grad() by what is no leaf."""
    leaves = {line["out"][0] for line in program["lines"] if line["op"] == "tensor"}
    return any(line["op"] == "grad" and set(line["in"][1:]) - leaves for line in program["lines"])


@check
def takes_root(program, found, ours):
    return any(line["op"] == "pow" and line.get("args", {}).get("exponent") == 0.5 for line in program["lines"])


@check
def is_large(program, found, ours):
    """A number above thousand."""
    made = [x.abs().double() for x in tensors(program) if x.numel()]
    return any(x[x.isfinite()].max() > 1000 for x in made if x.isfinite().any())


@check
def has_uint8(program, found, ours):
    return any(x.dtype == torch.uint8 for x in tensors(program))


@check
def is_tiny(program, found, ours):
    return bool((found.expected[found.distance > 0].abs() < 1e-4).all())


@check
def differentiates_twice(program, found, ours):
    said = found.torch_says + found.ours_says
    return "Trying to backward" in said and any(line.get("args", {}).get("create_graph") for line in program["lines"])


def with_hooks(program):
    """Each line, with the names of the tensors that have a hook by then."""
    hooked = set()
    for line in program["lines"]:
        if line["op"] == "register_hook":
            hooked.add(line["in"][0])
        yield line, hooked


@check
def hooks_then_writes(program, found, ours):
    return any(line["op"].endswith("_") and line["op"] != "requires_grad_" and line["in"][0] in hooked for line, hooked in with_hooks(program))


@check
def is_empty(program, found, ours):
    return any(x.numel() == 0 for x in tensors(program))


@check
def computes_nothing(program, found, ours):
    """A tensor of the refused line has no elements."""
    return any(x.numel() == 0 for x in inputs_of(program, found) if x is not None)


@check
def writes_into_itself(program, found, ours):
    """A line in place whose operand is the tensor itself, or shares its memory."""
    return any(line["op"].endswith("_") and len(inputs) == 2 and all(x is not None for x in inputs)
               and inputs[0].untyped_storage().data_ptr() == inputs[1].untyped_storage().data_ptr()
               for line, inputs in lines_with_inputs(program))


@check
def is_zero_there(program, found, ours):
    """PyTorch has zeros, and here there is nothing."""
    return found.ours_says == "nothing" and found.expected is not None and not found.expected.any()


def agrees(kind, program, ours):
    """Whether what this kind of run of PyTorch gives is what is given here."""
    return compare.difference(program, torch_side.run(program, kind=kind), ours.run([program])[0], kind=kind) is None


# Where PyTorch is made to run like that (see the classes), it gives what is given here.
VARIANTS = {
    "lies_otherwise": variants.Dense, "has_strided_weight": variants.DenseWeights, "negates_bools": variants.Numbers,
    "has_statistics_of_another_dtype": variants.OwnStatistics, "has_product_of_halves": variants.FloatProducts,
    "has_scans_by_recurrence": recurrences.Run, "keeps_views": variants.OldViews, "needs_no_checkpoint": variants.Recorded,
    "unshuffles_nothing": variants.Unshuffled,
}
CHECKS.update({name: functools.partial(lambda kind, program, found, ours: agrees(kind, program, ours), kind) for name, kind in VARIANTS.items()})


@check
def has_bias_without_dimensions(program, found, ours):
    bias = inputs_of(program, found)[2]
    return bias is not None and bias.dim() == 0


@check
def chooses_among_equals(program, found, ours):
    """Other places of the same numbers."""
    number, name = int(found.where.split()[1]), found.where.split()[2]
    line = program["lines"][number]
    if len(line["out"]) < 2 or name != line["out"][1]:
        return False
    x, dim = inputs_of(program, found)[0], line.get("args", {}).get("dim", -1)
    if x.dim() == 0:
        return False
    theirs, here = (torch.take_along_dim(x, places, dim) for places in (found.expected, found.actual))
    distinct = found.actual.sort(dim).values.diff(dim=dim)
    return bool(((theirs == here) | (theirs.isnan() & here.isnan())).all() and (distinct > 0).all())


@check
def is_a_half_or_whole_turn(program, found, ours):
    """0 on one side and pi on the other, or pi and -pi, as a half type has them."""
    turned = found.distance[found.distance > 0]
    return bool((((turned - 2 * math.pi).abs() < 0.04) | ((turned - math.pi).abs() < 0.02)).all())


@check
def is_a_rounding_of_float32(program, found, ours):
    return bool((found.distance <= 8 * torch.finfo(torch.float32).eps * found.expected.abs()).all())


@check
def is_not_finite_or_rounding_there(program, found, ours):
    """Wherever they differ, PyTorch has a NaN or an infinity; or a rounding, for which nobody has looked beside a NaN."""
    return is_a_rounding_of_parts(program, found, ours, ~found.expected.isfinite())


@check
def is_a_rounding_of_parts(program, found, ours, anyway=False):
    """Of the largest number in sight, or its reciprocals."""
    finite = [x.abs().double() for x in tensors(program) if x.is_floating_point() and x.numel()]
    largest = max((x[x.isfinite()].max().item() for x in finite if x.isfinite().any()), default=1.0)
    least = min((x[x.isfinite() & (x > 0)].min().item() for x in finite if (x.isfinite() & (x > 0)).any()), default=1.0)
    eps = torch.finfo(found.expected.dtype).eps
    return bool(((found.distance <= 16 * eps * max(1.0, largest, 1 / least)) | found.expected.isnan() | anyway).all())


@check
def hooks_what_it_asks_for(program, found, ours):
    """grad() of a result that has a hook."""
    return any(line["op"] == "grad" and hooked & set(line["in"][1:]) for line, hooked in with_hooks(program))


def keep_zeros(root):
    """Lets no node of the graph make a NaN of a gradient of zeros, as 0 times infinity is."""
    def zeros(grad_inputs, grad_outputs):
        if not any(g is not None and g.any() for g in grad_outputs):
            return tuple(None if g is None else torch.zeros_like(g) for g in grad_inputs)
        return None

    seen, ahead = set(), [root]
    while ahead:
        node = ahead.pop()
        if node is not None and node not in seen:
            seen.add(node)
            node.register_hook(zeros)
            ahead += [after for after, _ in node.next_functions]


@check
def has_no_derivative(program, found, ours):
    """PyTorch gives the tensor a history that leads to zeros only: the one that differs, or the root of the refused backward."""
    words = found.where.split()
    line = int(words[1]) if words[0] in ("line", "trace") else len(program["lines"]) - 1
    is_refusal = words[0] == "line"
    running = after(program["lines"][:line + (not is_refusal)])
    name = program["lines"][line]["in"][0] if is_refusal else words[-1]
    x = running.session.variables.get(name)
    leaves = [y for y in running.session.variables.values() if torch_side.is_usable(y) and y.requires_grad and y.is_leaf and y is not x]
    if x is None or not x.requires_grad:
        return False
    if x.is_leaf or not leaves:
        return x.is_leaf
    weights = torch.arange(1, x.numel() + 1, dtype=x.dtype).reshape(x.shape)
    keep_zeros(x.grad_fn)
    try:
        gradients = torch.autograd.grad((x * weights).sum(), leaves, allow_unused=True)
    except RuntimeError:
        return False
    return all(g is None or not g.any() for g in gradients)


@check
def einsum_of_one(program, found, ours):
    return any(line["op"] == "einsum" and len(line["in"]) == 1 for line in program["lines"])


@check
def is_made_unrecorded(program, found, ours):
    """The line where it shows is not recorded."""
    return not is_recording(program, int(found.where.split()[1]))


@check
def has_factor_zero(program, found, ours):
    """alpha or beta of the line is 0."""
    args = program["lines"][int(found.where.split()[1])].get("args", {})
    return 0 in (args.get("alpha"), args.get("beta"))


@check
def multiplies_one(program, found, ours):
    """A product of at most one factor."""
    for line, inputs in lines_with_inputs(program):
        if line["op"] in ("prod", "cumprod") and inputs[0] is not None:
            x, dim = inputs[0], line.get("args", {}).get("dim")
            if (x.numel() if dim is None or x.dim() == 0 else x.shape[dim]) <= 1:
                return True
    return False


@check
def has_the_common_dtype(program, found, ours):
    """The result here has the dtype that PyTorch's own promotion gives for the tensors of the line."""
    dtypes = [x.dtype for x in inputs_of(program, found) if x is not None]
    return str(functools.reduce(torch.promote_types, dtypes)).split(".")[1] == found.ours_says.split()[0]


@check
def sums_to_its_shape(program, found, ours):
    """sum_to with the shape that its argument has."""
    return any(line["op"] == "sum_to" and inputs[0] is not None and list(inputs[0].shape) == list(line["args"]["shape"])
               for line, inputs in lines_with_inputs(program))
