"""In place, on tensors and on views of them."""
from writer import broadcasts_to, partner

from . import action
from .views import view_of


@action(11)
def write(g):
    name = g.any(lambda x: not x.is_leaf or not x.requires_grad) if g.chance(0.85) else g.any()
    if g.chance(0.4):
        name = view_of(g, name) or name
    if name not in g.names():
        return
    which = g.random.choice(["add_", "add_", "mul_", "mul_", "sub_", "div_", "copy_", "copy_", "fill_", "zero_", "neg_", "exp_", "sqrt_", "relu_",
                             "sigmoid_", "tanh_", "leaky_relu_", "mul number", "div number"])
    if which in ("add_", "sub_"):
        g.add(which, [name, written(g, name)], **({"alpha": g.random.choice([2, -1, 0.5])} if g.chance(0.3) else {}))
    elif which in ("mul_", "div_", "copy_"):
        g.add(which, [name, written(g, name)])
    elif which == "fill_":
        g.add(which, [name], value=g.number(str(g.value(name).dtype).split(".")[1]))
    elif which.endswith("number"):
        g.add(which[:3] + "_", [name], other=g.number(str(g.value(name).dtype).split(".")[1]))
    else:
        g.add(which, [name])


def written(g, name):
    """What is written into the named tensor: mostly something that broadcasts to it."""
    x = g.value(name)
    fits = g.names(lambda y: broadcasts_to(y.shape, x.shape))
    if fits and g.chance(0.6):
        return g.random.choice(fits)
    return partner(g, name) if g.chance(0.3) else g.leaf([s if g.chance(0.8) else 1 for s in x.shape], None if g.chance(0.3) else str(x.dtype).split(".")[1])


@action(2)
def write_without_recording(g):
    """What an optimizer does to its parameters."""
    leaves = g.names(lambda x: x.is_leaf and x.requires_grad)
    if not leaves:
        return
    name = g.random.choice(leaves)
    g.add("set_grad_enabled", mode=False)
    if g.chance(0.3):
        name = view_of(g, name) or name
    if name not in g.run.session.variables:  # the view was refused
        name = leaves[0]
    if g.chance(0.5):
        g.add("mul_", [name], other=0.5)
    else:
        g.add("add_", [name, written(g, name)], alpha=-1)
    g.add("restore_grad_mode")
