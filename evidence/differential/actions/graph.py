"""What is done to the graph: cuts, flags, hooks, modes, gradients and gradients of gradients."""
from writer import MAX_ELEMENTS, one

from . import action


@action(2)
def graph(g):
    name = g.any(lambda x: x.is_floating_point())
    which = g.random.choice(["detach", "requires_grad_", "requires_grad_ off", "retain_grad", "register_hook", "grad_of", "zero_grad"])
    if which in ("detach", "grad_of"):
        g.add(which, [name], 1)
    elif which == "requires_grad_ off":
        g.add("requires_grad_", [name], requires_grad=False)
    elif which == "register_hook":
        name = g.any(lambda x: x.requires_grad)
        g.add(which, [name], factor=g.random.choice([2.0, 0.5, -1.0]))
    elif which == "retain_grad":
        g.add(which, [g.any(lambda x: x.requires_grad)])
    elif which == "zero_grad":
        g.add(which, [g.any(lambda x: x.is_leaf)])
    else:
        g.add(which, [name])


@action(1)
def switch_recording(g):
    if g.run.session.grad_modes and g.chance(0.7):
        g.add("restore_grad_mode")
    else:
        g.add("set_grad_enabled", mode=g.chance(0.5))


def to_scalar(g, name):
    """A number that depends on every element of the named tensor, each in its own way; None when there is nothing to differentiate."""
    x = g.value(name)
    if x.dim() and g.chance(0.7):
        weights = g.leaf(list(x.shape), str(x.dtype).split(".")[1], [0.25 * ((5 * i) % 7 - 3) for i in range(x.numel())], False)
        name = one(g.add("mul", [name, weights], 1))
    return name and one(g.add("sum" if g.chance(0.8) else "mean", [name], 1))


@action(3)
def differentiate(g):
    results = g.names(lambda x: x.requires_grad and not x.is_leaf and x.numel() <= MAX_ELEMENTS)
    if not results:
        return
    name = g.random.choice(results[-4:] if g.chance(0.7) else results)
    leaves = g.names(lambda x: x.requires_grad and x.is_leaf)
    which = g.random.choice(["backward", "backward", "backward twice", "grad", "double", "gradient", "accumulate"])
    if which == "gradient":
        x = g.value(name)
        weights = g.leaf(list(x.shape), str(x.dtype).split(".")[1], None, False)
        g.add("backward", [name], gradient=weights, retain_graph=g.chance(0.5))
        return
    loss = to_scalar(g, name) if not g.chance(0.05) else name
    if not loss:
        return
    if which == "backward":
        g.add("backward", [loss], retain_graph=g.chance(0.4))
    elif which == "backward twice":
        g.add("backward", [loss], retain_graph=g.chance(0.85))
        g.add("backward", [loss])
    elif which == "accumulate":
        g.add("backward", [loss], retain_graph=True)
        other = to_scalar(g, g.random.choice(results))
        if other:
            g.add("backward", [other])
    elif leaves:
        inputs = g.random.sample(leaves, g.random.randint(1, min(3, len(leaves))))
        if g.chance(0.15):
            inputs.append(g.random.choice(results))
        double = which == "double"
        found = g.add("grad", [loss] + inputs, len(inputs), create_graph=double,
                      **({"materialize_grads": True} if g.chance(0.1) else {"allow_unused": True} if g.chance(0.9) else {}))
        if double and found:
            second(g, [n for n in found if g.value(n) is not None and g.value(n).requires_grad], inputs)


def second(g, gradients, inputs):
    if not gradients:
        return
    total = None
    for name in gradients:
        part = to_scalar(g, name)
        total = part if total is None else part and one(g.add("add", [total, part], 1))
        if total is None:
            return
    if g.chance(0.5):
        g.add("backward", [total])
    else:
        g.add("grad", [total] + inputs, len(inputs), allow_unused=True)
