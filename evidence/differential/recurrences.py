"""PyTorch whose gradients of cumprod and logcumsumexp are the recurrences of autograd/ops/scan.cpp: what is there at infinities, at NaN,
and where a gradient is 0."""
import torch

import torch_side
from operations import OPERATIONS


def neighbour(x, dim, by, value):
    """Element i is element i + by of x, and `value` where there is none; by is 1 or -1."""
    edge = torch.full_like(x.narrow(dim, 0, 1), value)
    length = x.shape[dim] - 1
    return torch.cat([x.narrow(dim, 1, length), edge] if by == 1 else [edge, x.narrow(dim, 0, length)], dim)


def widened(x):
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


class Cumprod(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.save_for_backward(x)
        ctx.dim = dim
        return torch.cumprod(x, dim)

    @staticmethod
    def backward(ctx, grad):
        values, dim = widened(ctx.saved_tensors[0]), ctx.dim
        before = Cumprod.apply(neighbour(values, dim, -1, 1), dim)
        sums = OPERATIONS["linear_recurrence"](widened(grad), neighbour(values, dim, 1, 0), dim, reverse=True)
        return (before * sums).to(grad.dtype), None


class Logcumsumexp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        y = torch.logcumsumexp(x, dim)
        ctx.save_for_backward(x, y)
        ctx.dim = dim
        return y

    @staticmethod
    def backward(ctx, grad):
        x, out = (widened(saved) for saved in ctx.saved_tensors)
        dim, lowest = ctx.dim, torch.finfo(x.dtype).min
        out = torch.maximum(out, torch.tensor(lowest, dtype=x.dtype))
        finite = torch.minimum(out, torch.tensor(-lowest, dtype=x.dtype))
        falls = (neighbour(finite, dim, -1, lowest) - finite).exp()
        sums = OPERATIONS["linear_recurrence"](widened(grad), neighbour(falls, dim, 1, 0), dim, reverse=True)
        return ((x - out).exp() * sums).to(grad.dtype), None


FUNCTIONS = {"cumprod": Cumprod, "logcumsumexp": Logcumsumexp}


class Run(torch_side.Run):
    def call(self, line):
        function = FUNCTIONS.get(line["op"])
        x = self.session.variables[line["in"][0]] if function else None
        if x is None or not x.is_floating_point() or x.dim() == 0 or x.numel() == 0:
            return super().call(line)
        return function.apply(x, line["args"]["dim"])
