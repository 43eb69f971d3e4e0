"""The networks of `brigade bench ddp` (lab/bench/ddp/workloads.h) in PyTorch, by the same names."""
import torch
import torch.nn.functional as F
from torch import nn


class Many(nn.Module):
    """Residual layers, so small that what counts is the cost of each."""

    def __init__(self, count, width):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(count)])

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x).relu() * 0.1
        return x


class Encoder(nn.Module):
    def __init__(self, vocabulary, width, depth, heads):
        super().__init__()
        layer = {"dim_feedforward": 4 * width, "dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*[nn.TransformerEncoderLayer(width, heads, **layer) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.embed(tokens))))


class WithUnused(nn.Module):
    """A network beside a tenth of parameters, in number and in elements, that no forward uses."""

    def __init__(self, network):
        super().__init__()
        used = list(network.parameters())
        count = max(1, len(used) // 10)
        each = max(1, sum(p.numel() for p in used) // 10 // count)
        self.network = network
        self.unused = nn.ParameterList([nn.Parameter(torch.zeros(each)) for _ in range(count)])

    def forward(self, x):
        return self.network(x)


def images(batch, classes, *shape):
    return lambda: (torch.randn(batch, *shape), torch.randint(0, classes, (batch,)))


def vectors(batch, width):
    return lambda: (torch.randn(batch, width), torch.randn(batch, width))


def tokens(vocabulary, batch, length):
    def make():
        text = torch.randint(0, vocabulary, (batch, length + 1))
        return text[:, :-1].contiguous(), text[:, 1:].contiguous()
    return make


def classes_loss(y, target):
    return F.cross_entropy(y.flatten(0, -2), target.flatten())


def mlp():
    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))


# name -> (network, batch of one rank, loss)
WORKLOADS = {
    "mlp": (mlp, images(64, 10, 784), classes_loss),
    "cnn": (cnn, images(64, 10, 1, 28, 28), classes_loss),
    "transformer": (lambda: Encoder(1000, 256, 4, 4), tokens(1000, 8, 128), classes_loss),
    "many": (lambda: Many(200, 64), vectors(32, 64), F.mse_loss),
    "big": (lambda: nn.Linear(4096, 4096, bias=False), vectors(16, 4096), F.mse_loss),
}
