"""By index."""
import math

from . import action


@action(4)
def index(g):
    name = g.any()
    x = g.value(name)
    d = g.dim(x)
    size = x.shape[d] if x.dim() else 1
    which = g.random.choice(["index_select", "gather", "take_along_dim", "scatter", "scatter_add", "index_add", "index_copy", "index_fill", "masked_select",
                             "nonzero", "one_hot", "topk", "scatter number"])
    bad = 1 if g.chance(0.05) else 0
    dtype = "int64" if g.chance(0.9) else "int32"

    def indices(shape, distinct=False):
        count = math.prod(shape)
        values = g.random.sample(range(size), count) if distinct and count <= size else [g.random.randint(0, max(size - 1 + bad, 0)) for _ in range(count)]
        return g.leaf(shape, dtype, values)

    source_dtype = str(x.dtype).split(".")[1] if g.chance(0.95) else None
    if which == "index_select":
        g.add(which, [name, indices([g.random.randint(0, 4)])], 1, dim=d)
    elif which in ("gather", "take_along_dim", "scatter", "scatter_add", "scatter number"):
        shape = list(x.shape)
        if shape:
            shape[d] = g.random.randint(1, 3 if which in ("gather", "take_along_dim") else max(min(size, 3), 1))
        to = indices(shape, which == "scatter" and math.prod(shape) == (shape[d] if shape else 1))
        if which in ("scatter", "scatter_add"):
            if which == "scatter" and math.prod(shape) != (shape[d] if shape else 1):
                return  # which of several writes to one place stays is nobody's promise
            g.add(which, [name, to, g.leaf(shape, source_dtype)], 1, dim=d)
        elif which == "scatter number":
            g.add("scatter", [name, to], 1, dim=d, value=g.random.choice([2, 0.5]))
        else:
            g.add(which, [name, to], 1, dim=d)
    elif which in ("index_add", "index_copy"):
        count = g.random.randint(1, max(min(size, 3), 1))
        shape = list(x.shape)
        if shape:
            shape[d] = count
        at = indices([count], which == "index_copy")
        g.add(which, [name, at, g.leaf(shape, source_dtype)], 1, dim=d)
    elif which == "index_fill":
        g.add(which, [name, indices([g.random.randint(1, 2)])], 1, dim=d, value=g.random.choice([2, 0, -1]))
    elif which == "masked_select":
        g.add(which, [name, g.leaf(list(x.shape), "bool")], 1)
    elif which == "nonzero":
        g.add(which, [name], 1)
    elif which == "topk":
        return  # which of equals comes first is nobody's promise
    else:
        values = [g.random.randint(0, 3) for _ in range(3)]
        g.add(which, [g.leaf([3], "int64", values)], 1, num_classes=4)
