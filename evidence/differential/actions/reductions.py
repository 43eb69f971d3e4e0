"""Reductions, scans and products."""
from . import action

REDUCTIONS = ["sum", "mean", "prod", "logsumexp", "amax", "amin", "any", "all", "var", "std", "var_mean", "std_mean"]
REDUCTIONS_OVER_ONE = ["max", "min", "argmax", "argmin"]
ALONG = ["softmax", "log_softmax", "softmin", "cumsum", "cumprod", "logcumsumexp", "sort", "unbind"]


@action(7)
def reduce(g):
    name = g.any()
    x = g.value(name)
    which = g.random.choice(REDUCTIONS + REDUCTIONS_OVER_ONE + ["count_nonzero", "vector_norm", "norm"])
    keepdim = {"keepdim": True} if g.chance(0.3) else {}
    whole = g.chance(0.3)
    if which in REDUCTIONS_OVER_ONE:
        outputs = 2 if which in ("max", "min") and not whole else 1
        g.add(which, [name], outputs, **({} if whole else {"dim": g.dim(x), **keepdim}))
    elif which in ("var", "std", "var_mean", "std_mean"):
        g.add(which, [name], 2 if "mean" in which else 1, **({} if whole else {"dim": g.dims(x), "correction": g.random.choice([0, 1, 1]), **keepdim}))
    elif which == "count_nonzero":
        g.add(which, [name], 1, **({} if whole else {"dim": g.dims(x)}))
    elif which in ("vector_norm", "norm"):
        p = g.random.choice([1, 2, 2, 3, 0.5, "inf", "-inf", 0])
        key = "ord" if which == "vector_norm" else "p"
        g.add(which, [name], 1, **({} if whole else {key: p, "dim": g.dims(x), "keepdim": bool(keepdim)}))
    elif which in ("prod",):
        g.add(which, [name], 1, **({} if whole else {"dim": g.dim(x), **keepdim}))
    elif whole and which in ("logsumexp",):
        g.add(which, [name], 1, dim=g.dims(x))
    else:
        g.add(which, [name], 1, **({} if whole else {"dim": g.dims(x), **keepdim}))


@action(4)
def along(g):
    name = g.any()
    which = g.random.choice(ALONG)
    args = {"stable": True} if which == "sort" else {}
    g.add(which, [name], 2 if which == "sort" else 1, dim=g.dim(g.value(name)), **args)


@action(5)
def product(g):
    name = g.any(lambda x: x.dim() >= 1)
    x = g.value(name)
    dtype = str(x.dtype).split(".")[1] if g.chance(0.95) else None
    k = x.shape[-1] if x.dim() else 2
    which = g.random.choice(["matmul", "matmul", "linear", "mm", "bmm", "mv", "dot", "outer"])
    n = g.random.choice([1, 2, 3, 4])
    if which == "matmul":
        shape = g.random.choice([[k], [k, n], [k, n], [1, k, n], [2, k, n]])
        g.add(which, [name, g.leaf(shape, dtype)], 1)
    elif which == "linear":
        bias = g.leaf([n], dtype) if g.chance(0.6) else None
        g.add(which, [name, g.leaf([n, k], dtype), bias], 1)
    elif which == "mm":
        g.add(which, [name, g.leaf([k, n], dtype)], 1)
    elif which == "bmm":
        g.add(which, [name, g.leaf([x.shape[0] if x.dim() else 1, k, n], dtype)], 1)
    elif which == "outer":
        g.add(which, [name, g.leaf([n], dtype)], 1)
    else:
        g.add(which, [name, g.leaf([k], dtype)], 1)
