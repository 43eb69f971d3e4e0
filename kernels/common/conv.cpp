// Device-independent parts of convolution, unfold and fold.
#include <brigade/kernels/conv.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/conv.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <string>

namespace brigade::kernels {

// --- Convolution.

namespace {

ConvShape shape_of(const Shape& x, const Shape& weight, const Conv2dParams& p) {
  if (x.size() != 4 || weight.size() != 4) {
    throw ShapeError("conv2d: expected input [N, C, H, W] and weight [out, C / groups, kh, kw], got {} and {}", x,
                     weight);
  }
  if (p.groups < 1 || x[1] != (Size(weight[1]) * p.groups).value() || weight[0] % p.groups != 0) {
    throw ShapeError(
        "conv2d: input {} has {} channels, but weight {} with groups={} expects {} (and out divisible by groups)", x,
        x[1], weight, p.groups, weight[1] * p.groups);
  }
  ConvShape s{x[0], x[1], x[2], x[3], weight[0], weight[2], weight[3], 0, 0, p};
  int64_t* const out[] = {&s.out_h, &s.out_w};
  for (int d = 0; d < 2; ++d) {
    if (p.stride[d] < 1 || p.dilation[d] < 1 || p.padding[d] < 0) {
      throw ValueError("conv2d: stride and dilation must be at least 1 and padding at least 0");
    }
    const Size padded = Size(x[2 + d]) + p.padding[d] + p.padding[d];
    const Size reach = Size(p.dilation[d]) * (weight[2 + d] - 1) + 1;
    *out[d] = (padded - reach).value() / p.stride[d] + 1;
    // Clamp parameters that do not affect the result to the range that the libraries accept.
    s.params.stride[d] = std::clamp<int64_t>(p.stride[d], 1, std::max<int64_t>(padded.value(), 1));
    if (weight[2 + d] == 1) s.params.dilation[d] = 1;
    if (padded.value() < reach.value()) {
      throw ShapeError("conv2d: the padded input {} is smaller than the kernel of weight {}", x, weight);
    }
  }
  return s;
}

void check_pair(const Tensor& a, const Tensor& b, const char* what) {
  if (a.dtype() != b.dtype() || !is_floating_point(a.dtype())) {
    throw DTypeError("{}: expected two tensors of one floating dtype, got {} and {}", what, describe(a), describe(b));
  }
  if (a.device() != b.device()) {
    throw DeviceError("{}: all tensors must be on one device, got {} and {}", what, a.device(), b.device());
  }
}

void check_grad(const Tensor& grad, const ConvShape& shape) {
  if (grad.sizes() == shape.y_sizes()) return;
  throw ShapeError("conv2d backward: expected a gradient {}, got {}", shape.y_sizes(), describe(grad));
}

// Fills the result with zeros if its sums have no terms.
void finish_empty(ConvPlan& plan, const Tensor& a, const Tensor& b) {
  plan.done = plan.result.numel() == 0 || a.numel() == 0 || b.numel() == 0;
  if (plan.done && !plan.accumulate) fill(plan.result, 0);
}

// `bias` may be undefined.
void check_bias(const Tensor& bias, int64_t channels, const Tensor& x, const char* what) {
  if (!bias.defined()) return;
  if (bias.dim() != 1 || bias.sizes()[0] != channels || bias.dtype() != x.dtype())
    throw ShapeError("{}: expected a bias {} [{}], got {}", what, name(x.dtype()), channels, describe(bias));
  check_pair(x, bias, what);
}

}  // namespace

ConvPlan prepare_conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dParams& params) {
  check_pair(x, weight, "conv2d");
  ConvPlan plan{.shape = shape_of(x.sizes(), weight.sizes(), params), .result = {}};
  check_bias(bias, plan.shape.out_channels, x, "conv2d");
  plan.result = empty(plan.shape.y_sizes(), x.options());
  finish_empty(plan, x, weight);
  if (plan.done && bias.defined()) add_channel_bias(plan.result, bias);
  return plan;
}

ConvPlan prepare_conv2d_backward_input(const Tensor& grad, const Tensor& weight, const Tensor& bias,
                                       const Shape& x_sizes, const Conv2dParams& params) {
  check_pair(grad, weight, "conv2d backward");
  ConvPlan plan{.shape = shape_of(x_sizes, weight.sizes(), params), .result = {}};
  check_grad(grad, plan.shape);
  check_bias(bias, plan.shape.channels, grad, "conv2d backward");
  plan.result = empty(x_sizes, grad.options());
  finish_empty(plan, grad, weight);
  if (plan.done && bias.defined()) add_channel_bias(plan.result, bias);
  return plan;
}

ConvPlan prepare_conv2d_backward_weight(const Tensor& grad, const Tensor& x, const Shape& weight_sizes,
                                        const Conv2dParams& params, const Tensor& out, bool accumulate) {
  check_pair(grad, x, "conv2d backward");
  ConvPlan plan{.shape = shape_of(x.sizes(), weight_sizes, params), .result = out};
  check_grad(grad, plan.shape);
  if (!out.defined()) {
    plan.result = empty(weight_sizes, grad.options());
  } else if (out.sizes() != weight_sizes || out.dtype() != grad.dtype() || !out.is_contiguous()) {
    throw ShapeError("conv2d backward: out must be a contiguous {} {}, got {}", name(grad.dtype()), weight_sizes,
                     describe(out));
  } else {
    check_pair(grad, out, "conv2d backward");
    plan.accumulate = accumulate;
  }
  finish_empty(plan, grad, x);
  return plan;
}

void add_channel_bias(const Tensor& y, const Tensor& bias) {
  add_inplace(y, view::as_strided(bias, {bias.numel(), 1, 1}, {bias.strides()[0], 0, 0}, bias.storage_offset()), 1.0);
}

// --- Counts the sliding windows of an image, and checks the sizes.

namespace {

std::string pair(const std::array<int64_t, 2>& values) {
  return "[" + std::to_string(values[0]) + ", " + std::to_string(values[1]) + "]";
}

// The number of windows along each dimension.
std::array<int64_t, 2> windows(const char* what, const std::array<int64_t, 2>& size, const FoldParams& p) {
  std::array<int64_t, 2> out{};
  for (size_t d = 0; d < 2; ++d) {
    if (p.kernel_size[d] < 1 || p.dilation[d] < 1 || p.padding[d] < 0 || p.stride[d] < 1) {
      throw ValueError(
          "{}: kernel_size, dilation and stride must be at least 1 and padding at least 0, got {}, {}, {} and {}", what,
          pair(p.kernel_size), pair(p.dilation), pair(p.stride), pair(p.padding));
    }
    const int64_t span =
        (Size(size[d]) + p.padding[d] + p.padding[d] - Size(p.dilation[d]) * (p.kernel_size[d] - 1) - 1).value();
    if (size[d] < 1 || span < 0) {
      throw ShapeError("{}: no window of kernel_size {} and dilation {} fits into an image {} with padding {}", what,
                       pair(p.kernel_size), pair(p.dilation), pair(size), pair(p.padding));
    }
    out[d] = span / p.stride[d] + 1;
  }
  return out;
}

}  // namespace

FoldPlan prepare_unfold(const Tensor& x, const FoldParams& p) {
  if (x.dim() != 4) throw ShapeError("unfold: expected [N, C, H, W], got {}", x.sizes());
  const Shape& sizes = x.sizes();
  const auto out = windows("unfold", {sizes[2], sizes[3]}, p);
  return {
      sizes[0] * sizes[1],
      sizes[2],
      sizes[3],
      out[0],
      out[1],
      p,
      empty({sizes[0], (Size(sizes[1]) * p.kernel_size[0] * p.kernel_size[1]).value(), (Size(out[0]) * out[1]).value()},
            x.options())};
}

FoldPlan prepare_fold(const Tensor& columns, const std::array<int64_t, 2>& output_size, const FoldParams& p) {
  if (columns.dim() != 3) {
    throw ShapeError("fold: expected columns [N, C * kernel height * kernel width, windows], got {}", columns.sizes());
  }
  const auto out = windows("fold", output_size, p);
  const Shape& sizes = columns.sizes();
  const int64_t window = (Size(p.kernel_size[0]) * p.kernel_size[1]).value();
  if (sizes[1] % window != 0 || sizes[2] != (Size(out[0]) * out[1]).value()) {
    throw ShapeError(
        "fold: expected columns [N, a multiple of {}, {} * {}] for an output {} and kernel_size {}, got {}", window,
        out[0], out[1], pair(output_size), pair(p.kernel_size), sizes);
  }
  const int64_t channels = sizes[1] / window;
  return {sizes[0] * channels,
          output_size[0],
          output_size[1],
          out[0],
          out[1],
          p,
          empty({sizes[0], channels, output_size[0], output_size[1]}, columns.options())};
}

}  // namespace brigade::kernels
