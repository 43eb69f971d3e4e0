"""Data, and operations element by element."""
from table_rows import UNARY
from writer import FLOATS, INTEGERS, partner

from . import action

BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "atan2", "fmod", "remainder", "pow",
          "logical_and", "logical_or", "logical_xor"]
WITH_NUMBER = ["add", "sub", "mul", "div", "rsub", "rdiv", "eq", "ne", "lt", "le", "gt", "ge", "fmod", "remainder"]


@action(5)
def new_leaf(g):
    g.leaf()


@action(1)
def new_factory(g):
    dtype = g.random.choice(FLOATS + INTEGERS[:3])
    which = g.random.choice(["zeros", "ones", "full", "arange", "linspace", "eye"])
    if which in ("zeros", "ones"):
        g.add(which, outputs=1, size=g.shape(), dtype=dtype)
    elif which == "full":
        g.add(which, outputs=1, size=g.shape(), fill_value=g.random.choice([2, 3, 1]), dtype=dtype)
    elif which == "arange":
        step = g.random.choice([1, 2, 3])
        g.add(which, outputs=1, start=g.random.randint(0, 3), end=g.random.randint(3, 9), step=step, dtype=dtype)
    elif which == "linspace":
        g.add(which, outputs=1, start=g.random.uniform(-2, 0), end=g.random.uniform(0, 3), steps=g.random.randint(0, 6), dtype=g.random.choice(FLOATS[:2]))
    else:
        g.add(which, outputs=1, n=g.random.randint(0, 3), m=g.random.randint(0, 3), dtype=dtype)


# --- element by element
@action(9)
def unary(g):
    g.add(g.random.choice(UNARY), [g.any()], 1)


@action(14)
def binary(g):
    a = g.any()
    op = g.random.choices(BINARY, [6, 4, 6, 5] + [1] * (len(BINARY) - 4))[0]
    if op != "pow" and g.chance(0.25):
        if op not in WITH_NUMBER:
            op = g.random.choice(WITH_NUMBER)
        g.add(op, [a], 1, other=g.number(str(g.value(a).dtype).split(".")[1]))
        return
    b = partner(g, a)
    g.add(op, [a, b] if g.chance(0.5) else [b, a], 1)


@action(2)
def power(g):
    a = g.any()
    if g.chance(0.7):
        g.add("pow", [a], 1, exponent=g.random.choice([2, 3, 0.5, -1, 0, 1, 1.5, -2, 2.0, -1.0]))
    else:
        g.add("rpow", [a], 1, base=g.random.choice([2, 0.5, 3, 1, 2.0]))


@action(3)
def ternary(g):
    a = g.any()
    which = g.random.choice(["where", "where number", "masked_fill", "addcmul", "addcdiv", "lerp", "clamp", "clamp_tensors"])
    if which in ("where", "where number", "masked_fill"):
        mask = g.leaf([s if g.chance(0.8) else 1 for s in g.value(a).shape], "bool")
        if which == "where":
            g.add("where", [mask, a, partner(g, a)], 1)
        elif which == "where number":
            g.add("where", [mask, a], 1, other=g.random.choice([0.5, 2, -1, 2.0]))
        else:
            g.add("masked_fill", [a, mask], 1, value=g.random.choice([0, 1, -2, 0.5, 1.0]))
    elif which in ("addcmul", "addcdiv"):
        g.add(which, [a, partner(g, a), partner(g, a)], 1, **({"value": 0.5} if g.chance(0.5) else {}))
    elif which == "lerp":
        g.add("lerp", [a, partner(g, a)], 1, weight=g.random.choice([0.25, 0.75, 2.0]))
    elif which == "clamp":
        bounds = {"min": g.random.choice([-1, 0, 0.5, 0.0]), "max": g.random.choice([1, 2, 0.25, 2.0])}
        for key in g.random.sample(["min", "max", "none"], 1):
            bounds.pop(key, None)
        g.add("clamp", [a], 1, **bounds)
    else:
        g.add("clamp_tensors", [a, partner(g, a), partner(g, a)], 1)


@action(4)
def cast(g):
    g.add("to", [g.any()], 1, dtype=g.random.choice(FLOATS + [g.dtype] * 3 + INTEGERS))
