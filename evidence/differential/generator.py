"""Random programs: a few tensors, actions by chance (actions/), and usually gradients in the end. Most lines are meant to be accepted;
a few are spoilt on purpose."""
from actions import ACTIONS
from actions.graph import differentiate
from writer import Ended, Writer


def write_lines(g):
    weights = [weight for weight, _ in ACTIONS]
    for _ in range(g.random.randint(1, 3)):
        g.leaf()
    for _ in range(g.random.randint(1, 7)):
        g.random.choices(ACTIONS, weights)[0][1](g)
    if g.chance(0.8):
        while g.run.session.grad_modes:
            g.add("restore_grad_mode")
        differentiate(g)


def generate(seed, number):
    """A program with PyTorch's results."""
    g = Writer(seed, number)
    try:
        write_lines(g)
    except Ended:
        pass
    return {"id": g.id, "lines": g.run.lines}, g.run.result()
