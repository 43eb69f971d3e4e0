"""What an operation of the table is in PyTorch. Most names are found by themselves (torch.nn.functional, torch, Tensor); the others stand here."""
import torch
import torch.nn.functional as F

OPERATIONS = {}


def operation(function):
    OPERATIONS[function.__name__] = function
    return function


def find(name):
    """A function of the inputs and of the row's arguments."""
    if name in OPERATIONS:
        return OPERATIONS[name]
    for place in (F, torch, torch.Tensor):
        if hasattr(place, name):
            return getattr(place, name)
    raise ValueError(f"'{name}' is neither in PyTorch nor in operations.py")


# --- numbers on the left
@operation
def rdiv(x, other):
    return other / x


# --- what takes a list of tensors
@operation
def cat(*tensors, dim=0):
    return torch.cat(tensors, dim)


@operation
def stack(*tensors, dim=0):
    return torch.stack(tensors, dim)


@operation
def einsum(*tensors, equation):
    return torch.einsum(equation, *tensors)


# --- shapes
@operation
def slice(x, dim, start, end, step=1):
    index = [torch.arange(x.size(dim))[start:end:step] if d == dim % x.dim() else None for d in range(x.dim())]
    return x.index_select(dim, index[dim % x.dim()])


@operation
def index_select(x, index, dim):
    return torch.index_select(x, dim, index)


@operation
def sum_to(x, shape):
    return x.sum_to_size(shape)


@operation
def to(x, dtype):
    return x.to(getattr(torch, dtype))


@operation
def contiguous_of_transposed(x):
    return x.transpose(0, 1).contiguous()


# --- in place, on a copy
@operation
def add_(x, y, alpha=1):
    return (x * 1.0).add_(y, alpha=alpha)


@operation
def mul_(x, *y, other=None):
    return (x * 1.0).mul_(y[0] if y else other)


@operation
def copy_(x, y):
    return (x * 1.0).copy_(y) * x


@operation
def fill_(x, value):
    return (x * 1.0).fill_(value) * x


# --- layers whose parameters come in another order
@operation
def linear_relu(x, weight, bias=None):
    return F.relu(F.linear(x, weight, bias))


@operation
def linear_gelu(x, weight, bias=None):
    return F.gelu(F.linear(x, weight, bias), approximate="tanh")


@operation
def batch_norm(x, weight, bias, running_mean, running_var, training, **options):
    """The running statistics, moved, are results as well."""
    mean = None if running_mean is None else running_mean.clone()
    var = None if running_var is None else running_var.clone()
    y = F.batch_norm(x, mean, var, weight, bias, training, **options)
    return [y] + [t for t in (mean, var) if t is not None]


@operation
def layer_norm(x, weight, bias, normalized_shape, **options):
    return F.layer_norm(x, normalized_shape, weight, bias, **options)


@operation
def rms_norm(x, weight, normalized_shape, **options):
    return F.rms_norm(x, normalized_shape, weight, **options)


@operation
def scaled_dot_product_attention(query, key, value, attn_mask=None, **options):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return F.scaled_dot_product_attention(query, key, value, attn_mask, **options)
