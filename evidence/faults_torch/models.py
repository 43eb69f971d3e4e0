"""The small models that the planted faults share. Every layer is a Linear without bias unless said."""
import torch
from torch import nn


def linear(inputs=4, outputs=4):
    return nn.Linear(inputs, outputs, bias=False)


class Pair(nn.Module):
    """b(a(x))"""

    def __init__(self):
        super().__init__()
        self.a = linear()
        self.b = linear()

    def forward(self, x):
        return self.b(self.a(x))


class Heads(nn.Module):
    """t -> (h1, h2)"""

    def __init__(self):
        super().__init__()
        self.t = linear()
        self.h1 = linear()
        self.h2 = linear()

    def forward(self, x):
        features = self.t(x)
        return self.h1(features), self.h2(features)


class ScaledInputs(nn.Module):
    """layer(x / spread), of which spread is a buffer"""

    def __init__(self):
        super().__init__()
        self.layer = linear()
        self.register_buffer("spread", torch.ones(4))

    def forward(self, x):
        return self.layer(x / self.spread)


class Gate(nn.Module):
    """a, then b only where asked"""

    def __init__(self):
        super().__init__()
        self.a = linear()
        self.b = linear()

    def forward(self, x, with_b):
        x = self.a(x)
        return self.b(x) if with_b else x


class Gan(nn.Module):
    """A generator and a discriminator in one module."""

    def __init__(self):
        super().__init__()
        self.generator = linear()
        self.discriminator = linear(4, 1)

    def forward(self, noise, cut):
        fake = self.generator(noise)
        if cut:
            fake = fake.detach()
        return self.discriminator(fake)


def batch_norm_net():
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4))


def loss_of(output):
    return output.pow(2).mean()


def local_gradients(module, loss):
    """The gradients of this rank alone, without the reducer."""
    return torch.autograd.grad(loss(module), [p for p in module.parameters() if p.requires_grad], allow_unused=True)


def sgd(module, lr=0.1):
    parameters = module.parameters() if isinstance(module, nn.Module) else module
    return torch.optim.SGD(parameters, lr=lr)
