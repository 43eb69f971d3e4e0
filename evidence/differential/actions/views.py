"""Other shapes: views, and copies that move elements."""
from writer import one

from . import action


def factors(count, random):
    """Sizes whose product is `count`."""
    if count == 0:
        return [0, random.randint(1, 3)] if random.random() < 0.5 else [0]
    sizes = []
    while count > 1 and len(sizes) < 4:
        divisor = random.choice([d for d in range(2, count + 1) if count % d == 0])
        sizes.append(divisor)
        count //= divisor
    for _ in range(random.choice([0, 0, 1])):
        sizes.insert(random.randint(0, len(sizes)), 1)
    return sizes


def view_of(g, name):
    """A view of the named tensor; None when PyTorch refused it."""
    x = g.value(name)
    which = g.random.choice(["view", "reshape", "flatten", "permute", "transpose", "t", "expand", "unsqueeze", "squeeze", "slice", "slice", "narrow",
                             "select", "select", "movedim", "swapaxes", "diagonal", "split", "chunk", "unbind", "detach", "contiguous"])
    if which in ("view", "reshape"):
        shape = factors(x.numel(), g.random)
        if shape and g.chance(0.3):
            shape[g.random.randrange(len(shape))] = -1
        return one(g.add(which, [name], 1, **{"size" if which == "view" else "shape": shape}))
    if which == "flatten":
        a, b = sorted(g.random.choices(range(x.dim()), k=2)) if x.dim() else (0, -1)
        return one(g.add(which, [name], 1, start_dim=a, end_dim=b))
    if which == "permute":
        order = g.random.sample(range(x.dim()), x.dim())
        return one(g.add(which, [name], 1, dims=[d - x.dim() if g.chance(0.2) else d for d in order]))
    if which in ("transpose", "swapaxes"):
        return one(g.add(which, [name], 1, dim0=g.dim(x), dim1=g.dim(x)))
    if which == "t":
        return one(g.add(which, [name], 1))
    if which == "expand":
        size = [g.random.randint(1, 3) if s == 1 and g.chance(0.7) else -1 if g.chance(0.3) else s for s in x.shape]
        if g.chance(0.4):
            size = [g.random.randint(1, 3)] + size
        return one(g.add(which, [name], 1, size=size))
    if which == "unsqueeze":
        return one(g.add(which, [name], 1, dim=g.dim(x, 1)))
    if which == "squeeze":
        return one(g.add(which, [name], 1, dim=g.dim(x)))
    if which == "slice":
        d = g.dim(x)
        size = x.shape[d] if x.dim() else 1
        return one(g.add(which, [name], 1, dim=d, start=g.random.randint(-size - 1, size + 1), end=g.random.randint(-size, size + 2),
                         step=g.random.choice([1, 1, 2, 3])))
    if which == "narrow":
        d = g.dim(x)
        size = x.shape[d] if x.dim() else 1
        start = g.random.randint(0, size)
        return one(g.add(which, [name], 1, dim=d, start=start, length=g.random.randint(0, size - start)))
    if which == "select":
        d = g.dim(x)
        size = x.shape[d] if x.dim() else 1
        return one(g.add(which, [name], 1, dim=d, index=g.random.randint(-size, max(size - 1, 0))))
    if which == "movedim":
        count = g.random.randint(0, x.dim())
        return one(g.add(which, [name], 1, source=g.random.sample(range(x.dim()), count), destination=g.random.sample(range(x.dim()), count)))
    if which == "diagonal":
        a, b = g.dim(x), g.dim(x)
        return one(g.add(which, [name], 1, offset=g.random.randint(-1, 2), dim1=a, dim2=b))
    if which == "split":
        return one(g.add(which, [name], g.random.randint(1, 3), split_size_or_sections=g.random.randint(1, 3), dim=g.dim(x)))
    if which == "chunk":
        return one(g.add(which, [name], g.random.randint(1, 3), chunks=g.random.randint(1, 3), dim=g.dim(x)))
    if which == "unbind":
        return one(g.add(which, [name], g.random.randint(1, 2), dim=g.dim(x)))
    return one(g.add(which, [name], 1))


@action(12)
def view(g):
    view_of(g, g.any())


@action(2)
def rearrange(g):
    name = g.any()
    x = g.value(name)
    which = g.random.choice(["flip", "roll", "repeat", "tile", "repeat_interleave", "tril", "triu", "cat", "stack", "clone"])
    if which == "flip":
        g.add(which, [name], 1, dims=g.dims(x))
    elif which == "roll":
        g.add(which, [name], 1, shifts=g.random.randint(-3, 4), **({"dims": g.dim(x)} if g.chance(0.6) else {}))
    elif which == "repeat":
        g.add(which, [name], 1, repeats=[g.random.randint(1, 2)] * (x.dim() + g.random.randint(0, 1)))
    elif which == "tile":
        g.add(which, [name], 1, dims=[g.random.randint(1, 2) for _ in range(g.random.randint(1, 3))])
    elif which == "repeat_interleave":
        g.add(which, [name], 1, repeats=g.random.randint(0, 3), **({"dim": g.dim(x)} if g.chance(0.7) else {}))
    elif which in ("tril", "triu"):
        g.add(which, [name], 1, diagonal=g.random.randint(-2, 2))
    elif which == "clone":
        g.add(which, [name], 1)
    else:
        others = g.names(lambda y: y.shape == x.shape)
        g.add(which, [name] + g.random.choices(others, k=g.random.randint(0, 2)), 1, dim=g.dim(x, which == "stack"))
