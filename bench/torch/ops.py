"""The cases of `brigade bench ops` and `optim` in PyTorch, by the same names: reads a name a line, answers a line.

Started by bench/beside_torch.py, which sets the environment and takes turns with Brigade's program.
"""
import argparse
import pathlib
import re
import sys

import torch
import torch.nn.functional as F

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from follow import follow, microseconds, repeated  # noqa: E402


def rand(*sizes, seed=1):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def ints(bound, count):
    return torch.randint(0, bound, (count,), generator=torch.Generator().manual_seed(4))


def operations():
    """name -> (inputs, function of the inputs)"""
    ops = {}
    for n in (64, 128, 256, 512, 1024):
        ops[f"matmul {n}"] = (lambda n=n: [rand(n, n), rand(n, n, seed=2)], torch.matmul)
    ops["linear 64x784x1024"] = (lambda: [rand(64, 784), rand(1024, 784, seed=2), rand(1024, seed=3)], F.linear)
    ops["bmm 64x128x64x128"] = (lambda: [rand(64, 128, 64), rand(64, 64, 128, seed=2)], torch.bmm)
    ops["conv2d 64 3x3 56x56"] = (lambda: [rand(8, 64, 56, 56), rand(64, 64, 3, 3, seed=2)],
                                  lambda x, w: F.conv2d(x, w, padding=1))
    qkv = lambda: [rand(4, 8, 512, 64), rand(4, 8, 512, 64, seed=2), rand(4, 8, 512, 64, seed=3)]
    ops["attention 4x8x512x64"] = (qkv, F.scaled_dot_product_attention)
    ops["attention causal 4x8x512x64"] = (qkv, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    square = lambda: [rand(1024, 1024)]
    ops["softmax 1024x1024"] = (square, lambda x: x.softmax(-1))
    ops["log_softmax 1024x1024"] = (square, lambda x: x.log_softmax(-1))
    ops["gelu 1024x1024"] = (square, F.gelu)
    ops["gelu tanh 1024x1024"] = (square, lambda x: F.gelu(x, approximate="tanh"))
    ops["relu 1024x1024"] = (square, torch.relu)
    ops["sum rows 1024x1024"] = (square, lambda x: x.sum(1))
    ops["sum columns 1024x1024"] = (square, lambda x: x.sum(0))
    ops["sum narrow columns 1048576x4"] = (lambda: [rand(1 << 20, 4)], lambda x: x.sum(0))
    ops["sum narrow columns transposed 1048576x4"] = (lambda: [rand(4, 1 << 20)], lambda x: x.t().sum(0))
    vectors = lambda: [rand(1 << 22), rand(1 << 22, seed=2)]
    ops["dot 4194304"] = (vectors, torch.dot)
    ops["einsum i,i-> 4194304"] = (vectors, lambda x, y: torch.einsum("i,i->", x, y))
    ops["mv 1024x1024"] = (lambda: [rand(1024, 1024), rand(1024, seed=2)], torch.mv)
    ops["mv transposed 1024x1024"] = (lambda: [rand(1024, 1024), rand(1024, seed=2)], lambda a, x: torch.mv(a.t(), x))
    ops["mv 4x1048576"] = (lambda: [rand(4, 1 << 20), rand(1 << 20, seed=2)], torch.mv)
    ops["mv transposed 1048576x4"] = (lambda: [rand(1 << 20, 4), rand(1 << 20, seed=2)], lambda a, x: torch.mv(a.t(), x))
    ops["layer_norm 1024x1024"] = (lambda: [rand(1024, 1024), rand(1024, seed=2), rand(1024, seed=3)],
                                   lambda x, w, b: F.layer_norm(x, (1024,), w, b))
    ops["cross_entropy 1024x1024"] = (lambda: [rand(1024, 1024), ints(1024, 1024)], F.cross_entropy)
    ops["batch_norm 32x64x28x28"] = (lambda: [rand(32, 64, 28, 28), rand(64, seed=2), rand(64, seed=3)],
                                     lambda x, w, b: F.batch_norm(x, None, None, w, b, True))
    ops["max_pool2d 32x64x56x56"] = (lambda: [rand(32, 64, 56, 56)], lambda x: F.max_pool2d(x, 2))
    ops["embedding 50000x256, 8192"] = (lambda: [rand(50000, 256), ints(50000, 8192)], lambda w, i: F.embedding(i, w))
    return ops


def ops_case(name):
    base, way = name.rsplit(" ", 1)
    half = re.search(r" (b?float16)$", base)
    make, apply = operations()[base[:half.start()] if half else base]
    inputs = make()
    if half:
        dtype = getattr(torch, half[1])
        inputs = [x.detach().to(dtype).requires_grad_() if x.is_floating_point() else x for x in inputs]
    if way == "forward":
        def forward():
            with torch.no_grad():
                apply(*inputs)
        return repeated(forward)
    wanted = [x for x in inputs if x.requires_grad]
    gradient = torch.randn_like(apply(*inputs))

    def backward():
        y = apply(*inputs)
        return microseconds(1, lambda: torch.autograd.grad(y, wanted, gradient))
    return backward


def optim_case(name, fused):
    optimizer, count = re.fullmatch(r"(.+) 10M in (\d+)", name).groups()
    count = int(count)
    parameters = [torch.ones(10_000_000 // count, requires_grad=True) for _ in range(count)]
    for p in parameters:
        p.grad = torch.full_like(p, 0.01)
    how = {"fused": True} if fused else {"foreach": True}
    made = {"AdamW": lambda: torch.optim.AdamW(parameters, **how), "Adam": lambda: torch.optim.Adam(parameters, **how),
            "SGD": lambda: torch.optim.SGD(parameters, lr=1e-4, **how),
            "SGD momentum": lambda: torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, **how)}[optimizer]()
    return repeated(made.step)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("suite", choices=["ops", "optim"])
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--not-fused", action="store_true", help="foreach instead of fused optimizers")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    follow(ops_case if given.suite == "ops" else lambda name: optim_case(name, not given.not_fused), given.seconds)


main()
