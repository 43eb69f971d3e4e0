"""Runs a program in PyTorch, line by line, with the rules of run.h: a refused line leaves its results unset, lines that need them are
passed over, and a refused backward ends the program."""
import base64
import builtins
import pathlib
import sys
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests/reference"))
import operations  # noqa: E402

warnings.filterwarnings("ignore")
DTYPES = {name: getattr(torch, name) for name in ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool")}
STEPS = {}


def step(function):
    STEPS[function.__name__] = function
    return function


class Malformed(Exception):
    """A line that cannot be run, which is the fault of whoever wrote it."""


class Session:
    """What a running program holds."""

    def __init__(self):
        self.variables = {}
        self.grad_modes = []


def as_numbers(values):
    return [as_numbers(v) if isinstance(v, list) else float(v) if isinstance(v, str) else v for v in values]


# --- tensors from data and from nothing
@step
def tensor(session, *, values, shape, dtype="float32", requires_grad=False):
    # A tensor of its own: reshape gives a view.
    return torch.tensor(as_numbers(values), dtype=DTYPES[dtype]).reshape(shape).clone().requires_grad_(requires_grad)


def factory(name):
    def call(session, dtype="float32", **arguments):
        return getattr(torch, name)(**arguments, dtype=DTYPES[dtype])

    STEPS[name] = call


for _name in ("zeros", "ones", "full", "arange", "linspace", "eye"):
    factory(_name)


# --- in place
def in_place(name):
    def call(session, x, *others, other=None, **arguments):
        return getattr(x, name)(*others, *([] if other is None else [other]), **arguments)

    STEPS[name] = call


for _name in ("add_", "sub_", "mul_", "div_", "copy_", "fill_", "zero_", "neg_", "exp_", "sqrt_", "relu_", "sigmoid_", "tanh_"):
    in_place(_name)


@step
def leaky_relu_(session, x, negative_slope=0.01):
    return torch.nn.functional.leaky_relu_(x, negative_slope)


# --- the graph
@step
def requires_grad_(session, x, requires_grad=True):
    return x.requires_grad_(requires_grad)


@step
def detach(session, x):
    return x.detach()


@step
def retain_grad(session, x):
    x.retain_grad()


@step
def register_hook(session, x, factor):
    x.register_hook(lambda grad: grad * factor)


@step
def grad_of(session, x):
    return x.grad


@step
def zero_grad(session, x):
    x.grad = None


@step
def set_grad_enabled(session, mode):
    session.grad_modes.append(torch.is_grad_enabled())
    torch.set_grad_enabled(mode)


@step
def restore_grad_mode(session):
    if session.grad_modes:
        torch.set_grad_enabled(session.grad_modes.pop())


@step
def backward(session, y, gradient=None, retain_graph=False, create_graph=False):
    # None: what create_graph says, as in the C++ interface.
    y.backward(session.variables[gradient] if gradient else None, retain_graph=retain_graph or None, create_graph=create_graph)


@step
def grad(session, y, *xs, gradient=None, retain_graph=False, create_graph=False, **options):
    return torch.autograd.grad([y], xs, [session.variables[gradient]] if gradient else None, retain_graph=retain_graph or None,
                               create_graph=create_graph, **options)


# --- shapes
@step
def contiguous(session, x):
    return x.contiguous()


@step
def slice(session, x, dim, start, end, step=1):
    part = [builtins.slice(None)] * x.dim()
    if not -x.dim() <= dim < x.dim():
        raise IndexError(f"no dimension {dim}")
    part[dim] = builtins.slice(start, end, step)
    return x[tuple(part)]


# What Python says of a call that is written wrong, which is no answer of PyTorch's.
WRITTEN_WRONG = ("unexpected keyword argument", "missing 1 required", "missing 2 required", "positional argument", "invalid combination of arguments")


def call(session, line):
    arguments = {name: as_numbers([value])[0] if isinstance(value, list) or value in ("inf", "-inf", "nan") else value
                 for name, value in line.get("args", {}).items()}
    inputs = [None if name is None else session.variables[name] for name in line.get("in", [])]
    operation = STEPS.get(line["op"])
    if operation:
        return operation(session, *inputs, **arguments)
    return operations.find(line["op"])(*inputs, **arguments)


def is_set(session, line):
    names = line.get("in", []) + [line.get("args", {}).get("gradient")]
    return all(name is None or name in session.variables for name in names)


def is_usable(x):
    """PyTorch says of some views, when they are asked for their history, that they should not have been made as they were."""
    try:
        return x is not None and (x.is_leaf or True)
    except RuntimeError:
        return False


def snapshot(x):
    return {"dtype": str(x.dtype).split(".")[1], "shape": list(x.shape), "requires_grad": x.requires_grad, "values": x.detach().clone()}


class Run:
    """A program as it is written, and run at once: a generator looks at what there is. `disturb` is told of each line's results."""

    def __init__(self, disturb=None, with_trace=False):
        self.session = Session()
        self.lines = []
        self.refusals = []  # {"line", "kind", "message"}
        self.trace = [] if with_trace else None
        self.ended = False
        self.disturb = disturb
        torch.set_grad_enabled(True)

    def add(self, line):
        """True when the line was run and not refused."""
        self.lines.append(line)
        ran = accepted = not self.ended and is_set(self.session, line)
        if ran:
            try:
                self.keep(line, self.call(line))
            except Malformed:
                raise
            except Exception as error:  # any kind of refusal
                accepted = False
                if isinstance(error, TypeError) and any(words in str(error) for words in WRITTEN_WRONG):
                    self.lines.pop()
                    raise Malformed(f"{line}: {error}") from error
                self.refusals.append({"line": len(self.lines) - 1, "kind": type(error).__name__, "message": str(error)})
                self.ended = line["op"] in ("backward", "grad")
        if self.trace is not None:
            names = line.get("out") or line.get("in", [])
            seen = {n: self.session.variables[n] for n in names if is_usable(self.session.variables.get(n))} if ran else {}
            self.trace.append({n: snapshot(x) for n, x in seen.items()})
        return accepted

    def call(self, line):
        return call(self.session, line)

    def keep(self, line, results):
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        if self.disturb:
            self.disturb(self.session, line, results)
        for name, result in zip(line.get("out", []), results):
            self.session.variables[name] = result

    def result(self):
        torch.set_grad_enabled(True)
        variables = {n: x for n, x in self.session.variables.items() if is_usable(x)}
        gradients = {} if self.ended else {n: x.grad for n, x in variables.items() if x.grad is not None}
        unusable = [n for n, x in self.session.variables.items() if x is not None and n not in variables]
        result = {"refusals": self.refusals, "unusable": unusable, "variables": {n: snapshot(x) for n, x in variables.items()},
                  "gradients": {n: snapshot(x) for n, x in gradients.items()}}
        if self.trace is not None:
            result["trace"] = self.trace
        return result


def run(program, disturb=None, with_trace=False, kind=Run):
    running = kind(disturb, with_trace)
    for line in program["lines"]:
        running.add(line)
    return running.result()


# --- the other side's results, which come as base64
def decoded(entry):
    raw = bytearray(base64.b64decode(entry["data"]))
    dtype = DTYPES[entry["dtype"]]
    values = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    return {**{k: entry[k] for k in ("dtype", "shape", "requires_grad")}, "values": values.reshape(entry["shape"])}


def decoded_result(result):
    tensors = {key: {n: decoded(e) for n, e in result[key].items()} for key in ("variables", "gradients")}
    trace = {"trace": [{n: decoded(e) for n, e in after.items()} for after in result["trace"]]} if "trace" in result else {}
    return {**result, **tensors, **trace}


def encoded(entry):
    x = entry["values"].reshape(-1).clone(memory_format=torch.contiguous_format)
    data = base64.b64encode(x.view(torch.uint8).numpy().tobytes()).decode() if x.numel() else ""
    return {**{k: entry[k] for k in ("dtype", "shape", "requires_grad")}, "data": data}
