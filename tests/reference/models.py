"""The models of lab/reference/models in PyTorch: the same names of parameters, the same phases of a step."""
import torch
import torch.nn as nn
import torch.nn.functional as F

MODELS = {}


def model(cls):
    MODELS[cls.__name__.lower()] = cls
    return cls


class Model(nn.Module):
    """A step is one or more phases, each a loss and the part of the model that its gradients move."""

    phases = 1

    def loss(self, phase, inputs):
        raise NotImplementedError

    def trained(self, phase):
        return self


@model
class MLP(Model):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        return self.layers[-1](x)

    def loss(self, phase, inputs):
        return F.cross_entropy(self(inputs[0]), inputs[1])


class ConvNorm(nn.Module):
    """Convolution, batch norm, ReLU. No bias: batch norm takes it away again."""

    def __init__(self, channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, out_channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out_channels)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


@model
class CNN(Model):
    def __init__(self, channels, classes):
        super().__init__()
        self.block1 = ConvNorm(channels[0], channels[1])
        self.block2 = ConvNorm(channels[1], channels[2])
        self.head = nn.Linear(channels[2] * 4, classes)

    def forward(self, x):
        x = F.max_pool2d(self.block1(x), 2)
        x = F.avg_pool2d(self.block2(x), 2)
        return self.head(x.flatten(1))

    def loss(self, phase, inputs):
        return F.cross_entropy(self(inputs[0]), inputs[1])


@model
class UNet(Model):
    """Two levels with a skip connection, and deep supervision: the lower level has a head, and a loss, of its own."""

    def __init__(self, channels):
        super().__init__()
        image, wide, deep = channels
        self.down = ConvNorm(image, wide)
        self.bottom = ConvNorm(wide, deep)
        self.up = ConvNorm(deep + wide, wide)
        self.head = nn.Conv2d(wide, 1, 1)
        self.deep_head = nn.Conv2d(deep, 1, 1)

    def forward(self, x):
        skip = self.down(x)
        bottom = self.bottom(F.max_pool2d(skip, 2))
        up = self.up(torch.cat([F.interpolate(bottom, scale_factor=2, mode="bilinear"), skip], 1))
        return self.head(up), F.interpolate(self.deep_head(bottom), scale_factor=2, mode="nearest")

    def loss(self, phase, inputs):
        target = inputs[1].to(inputs[0].dtype)
        output, deep = self(inputs[0])
        return F.binary_cross_entropy_with_logits(output, target) + 0.4 * F.binary_cross_entropy_with_logits(deep, target)


@model
class GAN(Model):
    """First the discriminator learns from real and made examples, then the generator from the discriminator."""

    phases = 2

    def __init__(self, latent, hidden, features):
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, features))
        self.discriminator = nn.Sequential(nn.Linear(features, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 1))

    def loss(self, phase, inputs):
        noise, real = inputs
        made = self.generator(noise)
        ones = torch.ones(real.shape[0], 1, dtype=real.dtype)
        if phase == 1:
            return F.binary_cross_entropy_with_logits(self.discriminator(made), ones)
        return (F.binary_cross_entropy_with_logits(self.discriminator(real), ones)
                + F.binary_cross_entropy_with_logits(self.discriminator(made.detach()), torch.zeros_like(ones)))

    def trained(self, phase):
        return self.generator if phase == 1 else self.discriminator


class Block(nn.Module):
    """Attention and a feed-forward net, each behind a layer norm and beside a residual connection. The projection to queries, keys
    and values has no bias, since a softmax does not see that of the keys."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


@model
class GPT(Model):
    """The head's weight is the embedding's."""

    def __init__(self, vocabulary, positions, width, heads, blocks):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def loss(self, phase, inputs):
        logits = self(inputs[0])
        return F.cross_entropy(logits.flatten(0, 1), inputs[1].flatten())
