"""What an operation of the table is in PyTorch. Most names are found by themselves (torch.nn.functional, torch, Tensor); the others stand here."""
import builtins

import torch
import torch.nn.functional as F
import torch.utils.checkpoint

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
def swapaxes(x, dim0, dim1):
    return torch.swapaxes(x, dim0, dim1)


@operation
def sum_to(x, shape):
    return x.sum_to_size(shape)


@operation
def to(x, dtype, copy=False):
    return x.to(getattr(torch, dtype), copy=copy)


@operation
def contiguous_of_transposed(x):
    return x.transpose(0, 1).contiguous()


# --- in place, on a result; what was there before is part of the answer
def in_place(name):
    def call(x, *others, **arguments):
        return getattr(x * 1.0, name)(*others, **arguments) * x

    OPERATIONS[name] = call


for _name in ("add_", "sub_", "mul_", "div_", "copy_", "fill_", "zero_", "neg_", "exp_", "sqrt_", "relu_", "sigmoid_", "tanh_"):
    in_place(_name)


@operation
def leaky_relu_(x, negative_slope):
    return F.leaky_relu_(x * 1.0, negative_slope) * x


@operation
def write_to_row(x, row):
    """A write through a view reaches its base."""
    y = x * 1.0
    y[1].mul_(row)
    return y * x


@operation
def write_to_base(x, other):
    """A write to a base reaches a view that was taken before."""
    y = x * 1.0
    column = y[:, 1]
    y.mul_(other)
    return column * x[:, 0]


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


@operation
def group_norm(x, weight, bias, num_groups, **options):
    return F.group_norm(x, num_groups, weight, bias, **options)


@operation
def instance_norm(x, running_mean, running_var, weight, bias, **options):
    """The running statistics, moved, are results as well."""
    mean = None if running_mean is None else running_mean.clone()
    var = None if running_var is None else running_var.clone()
    return [F.instance_norm(x, mean, var, weight, bias, **options)] + [t for t in (mean, var) if t is not None]


@operation
def conv_transpose1d(x, weight, bias, **options):
    return F.conv_transpose1d(x, weight, bias, **options)


# --- pooling
@operation
def max_pool1d_with_indices(x, **options):
    return F.max_pool1d_with_indices(x, return_indices=True, **options)


@operation
def max_pool2d_with_indices(x, **options):
    return F.max_pool2d_with_indices(x, return_indices=True, **options)


# --- what stands under torch.linalg
@operation
def vector_norm(x, ord=2, dim=None, keepdim=False):
    return torch.linalg.vector_norm(x, ord, dim, keepdim)


@operation
def matrix_norm(x, dim=(-2, -1), keepdim=False):
    return torch.linalg.matrix_norm(x, "fro", dim, keepdim)


@operation
def norm(x, p=2, dim=None, keepdim=False):
    return torch.norm(x, p, dim, keepdim)


# --- by their definitions: PyTorch has no second derivative of its own hardsigmoid, and that of binary_cross_entropy adds 1e-12 to x and
# to 1 - x, which float64 shows
@operation
def hardsigmoid(x):
    return F.relu6(x + 3) / 6


@operation
def binary_cross_entropy(x, target, weight=None, reduction="mean"):
    if torch.is_autocast_enabled("cpu"):  # what it casts is asked
        return F.binary_cross_entropy(x, target, weight, reduction=reduction)
    losses = -(target * x.log().clamp(min=-100) + (1 - target) * (1 - x).log().clamp(min=-100))
    if weight is not None:
        losses = losses * weight
    return losses if reduction == "none" else getattr(losses, reduction)()


# --- by its definition: PyTorch has none
@operation
def linear_recurrence(b, a, dim, reverse=False):
    steps = list(zip(b.unbind(dim), a.unbind(dim)))
    last, results = torch.zeros_like(steps[0][0]), []
    for b_i, a_i in reversed(steps) if reverse else steps:
        last = b_i + a_i * last
        results.append(last)
    return torch.stack(results[::-1] if reverse else results, dim)


# --- several functions under one name
@operation
def max(x, **arguments):
    return torch.max(x, **arguments)


@operation
def min(x, **arguments):
    return torch.min(x, **arguments)


@operation
def pow(x, *y, exponent=None):
    return torch.pow(x, y[0] if y else exponent)


@operation
def rpow(x, base):
    return torch.pow(base, x)


@operation
def clamp_tensors(x, low, high):
    return torch.clamp(x, low, high)


@operation
def lerp(a, b, *w, weight=None):
    return torch.lerp(a, b, w[0] if w else weight)


@operation
def where(condition, a, *b, other=None):
    return torch.where(condition, a, b[0] if b else other)


# --- by index: the inputs are tensors, the dimension is an argument
@operation
def index(x, rows, columns, skip=0):
    return x[(builtins.slice(None),) * skip + (rows, columns)]


@operation
def index_put(x, value, rows, columns):
    return x.index_put((rows, columns), value)


@operation
def gather(x, index, dim):
    return torch.gather(x, dim, index)


@operation
def scatter(x, index, *source, dim, value=None):
    return torch.scatter(x, dim, index, source[0]) if source else torch.scatter(x, dim, index, value)


@operation
def scatter_add(x, index, source, dim):
    return torch.scatter_add(x, dim, index, source)


@operation
def index_add(x, index, source, dim, alpha=1):
    return torch.index_add(x, dim, index, source, alpha=alpha)


@operation
def index_copy(x, index, source, dim):
    return torch.index_copy(x, dim, index, source)


@operation
def index_fill(x, index, dim, value):
    return torch.index_fill(x, dim, index, value)


@operation
def pad(x, pad, mode="constant", value=None):
    return F.pad(x, pad, mode, value)


@operation
def sort(x, **arguments):
    return torch.sort(x, **arguments)


@operation
def topk(x, **arguments):
    return torch.topk(x, **arguments)


@operation
def gaussian_nll_loss(x, target, var, **options):
    return F.gaussian_nll_loss(x, target, var, **options)


@operation
def binary_cross_entropy_with_logits(x, target, weight=None, pos_weight=None, **options):
    return F.binary_cross_entropy_with_logits(x, target, weight, pos_weight=pos_weight, **options)


@operation
def fmod(a, *b, other=None):
    return torch.fmod(a, b[0] if b else other)


@operation
def remainder(a, *b, other=None):
    return torch.remainder(a, b[0] if b else other)


@operation
def clamp_min(x, min):
    return torch.clamp_min(x, min)


@operation
def clamp_max(x, max):
    return torch.clamp_max(x, max)


# --- inside of an autocast region, which the row opens
def autocast(dtype=None, **options):
    return torch.autocast("cpu", dtype, **options)


@operation
def autocast_weight_twice(x, w):
    return torch.mm(torch.mm(x, w), w)


@operation
def autocast_without_cache(x, w):
    with autocast(cache_enabled=False):
        return torch.mm(torch.mm(x, w), w)


@operation
def autocast_cleared_cache(x, w):
    y = torch.mm(x, w)
    torch.clear_autocast_cache()
    return torch.mm(y, w)


@operation
def autocast_off_inside(x, w):
    y = torch.mm(x, w)
    with autocast(enabled=False):
        return torch.mm(y.float(), w)


@operation
def autocast_on_inside_off(x, w):
    with autocast(enabled=False):
        y = torch.mm(x, w)
        with autocast():
            return torch.mm(y, w)


@operation
def autocast_other_dtype_inside(x, w):
    """Not of the leaf itself: PyTorch's cache would give it in the outer dtype."""
    y = torch.mm(x, w * 1.0)
    other = torch.float16 if torch.get_autocast_dtype("cpu") == torch.bfloat16 else torch.bfloat16
    with autocast(other):
        return torch.mm(y, w * 1.0)


@operation
def autocast_after_no_grad(x, w):
    """In this order: PyTorch's cache would give the second product a weight without history in the other."""
    y = torch.mm(x, w)
    with torch.no_grad():
        z = torch.mm(x, w)
    return y + z


@operation
def autocast_checkpoint(x, w):
    y = torch.utils.checkpoint.checkpoint(lambda x: F.relu(torch.mm(x, w)), x, use_reentrant=False)
    return torch.mm(y, w)


class Product(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.mm(x, w)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return torch.mm(grad, w.t()), torch.mm(x.t(), grad)


class ExactProduct(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.mm(x, w)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return torch.mm(grad, w.t()), torch.mm(x.t(), grad)


@operation
def autocast_custom_function(x, w):
    return Product.apply(x, w)


@operation
def autocast_cast_inputs(x, w):
    return ExactProduct.apply(torch.mm(x, w), w)


@operation
def autocast_in_place(x, w):
    y = torch.mm(x, w)
    return y.add_(x).mul_(2.0).sigmoid_()


@operation
def autocast_feed_forward(x, w):
    y = F.linear(F.gelu(F.linear(x, w)), w)
    return F.softmax(F.layer_norm(x + y, [4]), -1)
