// Checks of shapes and parameters, and padding, before a node of conv_nodes.h is made.
#include <brigade/autograd/ops/conv.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/conv_nodes.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/shape.h>
#include <brigade/kernels/factory.h>

#include <string>

namespace brigade {
namespace {

using autograd::OpInfo;

// --- the user's options as 2-d parameters; a 1-d convolution uses the second entries
kernels::Conv2dParams in_two(const Conv1dFuncOptions& o) {
  return {{1, o.stride}, {0, o.padding.values()[0]}, {1, o.dilation}, o.groups};
}
kernels::Conv2dParams in_two(const Conv2dFuncOptions& o) {
  return {o.stride, o.padding.values(), o.dilation, o.groups};
}

// Checks the numbers of dimensions; the sizes are checked later, by the callers and the kernels.
void check_dims(const OpInfo& info, const Tensor& x, const Tensor& weight, const char* weight_text, int spatial) {
  if (weight.dim() == spatial + 2 && (x.dim() == spatial + 2 || x.dim() == spatial + 1)) return;
  throw ShapeError("{}: expected input {} and weight {} {}, got {} and {}", info.op,
                   spatial == 1 ? "[N, C, L] or [C, L]" : "[N, C, H, W] or [C, H, W]", weight_text,
                   spatial == 1 ? "k]" : "kh, kw]", x.sizes(), weight.sizes());
}

std::string several(const int64_t* values, int count) {
  std::string text = std::to_string(values[0]);
  for (int i = 1; i < count; ++i)
    text += ", " + std::to_string(values[i]);
  return count == 1 ? text : "[" + text + "]";
}

void check_params(const OpInfo& info, const kernels::Conv2dParams& p, int spatial) {
  const size_t first = spatial == 1 ? 1 : 0;
  if (p.groups < 1) throw ValueError("{}: groups must be at least 1, got {}", info.op, p.groups);
  for (size_t d = first; d < 2; ++d) {
    if (p.stride[d] >= 1 && p.dilation[d] >= 1 && p.padding[d] >= 0) continue;
    throw ValueError("{}: stride and dilation must be at least 1 and padding at least 0, got {}, {} and {}", info.op,
                     several(&p.stride[first], spatial), several(&p.dilation[first], spatial),
                     several(&p.padding[first], spatial));
  }
}

Tensor convolve(const OpInfo& info, const Tensor& x, const Tensor& weight, const Tensor& bias,
                kernels::Conv2dParams params, bool same, int spatial) {
  const size_t first = spatial == 1 ? 1 : 0;
  bool odd[2] = {false, false};
  autograd::detail::located(info.where, [&] {
    check_dims(info, x, weight, "[out, C / groups,", spatial);
    check_params(info, params, spatial);
    const int64_t channels = x.size(x.dim() - spatial - 1);
    const int64_t expected_channels = (Size(weight.size(1)) * params.groups).value();
    if (channels != expected_channels || weight.size(0) % params.groups != 0) {
      throw ShapeError(
          "{}: input {} has {} channels, but weight {} with groups={} expects {} (and out divisible by groups)",
          info.op, x.sizes(), channels, weight.sizes(), params.groups, expected_channels);
    }
    for (size_t d = first; d < 2; ++d) {
      const int64_t reach = (Size(params.dilation[d]) * (weight.size(static_cast<int64_t>(d) + spatial) - 1)).value();
      if (same) {
        if (params.stride[d] != 1)
          throw ValueError("{}: padding \"same\" is for a stride of 1, got {}", info.op,
                           several(&params.stride[first], spatial));
        // If the number of zeros is odd, one too many at the start adds a first row to the result, which is cut off.
        params.padding[d] = reach / 2 + reach % 2;
        odd[d] = reach % 2 != 0;
      }
      const Size padded = Size(x.size(x.dim() - 2 + static_cast<int64_t>(d))) + params.padding[d] + params.padding[d];
      if (padded.value() <= reach) {
        throw ShapeError("{}: the padded input {} is smaller than the kernel of weight {}", info.op, x.sizes(),
                         weight.sizes());
      }
    }
  });
  Tensor y = autograd::detail::convolution(info, x, weight, bias, params);
  for (size_t d = first; d < 2; ++d) {
    const int64_t dim = y.dim() - 2 + static_cast<int64_t>(d);
    if (odd[d]) y = y.slice(dim, 1, y.size(dim), 1, info.where);
  }
  return y.contiguous(info.where);
}

// In 1-d, the unused entry of `output_padding` is 0.
Tensor transpose_convolve(const OpInfo& info, Tensor x, const Tensor& weight, const Tensor& bias,
                          const kernels::Conv2dParams& params, const std::array<int64_t, 2>& output_padding,
                          int spatial) {
  const size_t first = spatial == 1 ? 1 : 0;
  Shape sizes = x.sizes();
  autograd::detail::located(info.where, [&] {
    check_dims(info, x, weight, "[C, out / groups,", spatial);
    check_params(info, params, spatial);
    const int channel = x.dim() - spatial - 1;
    if (x.sizes()[channel] != weight.size(0) || weight.size(0) % params.groups != 0) {
      throw ShapeError("{}: input {} has {} channels, but weight {} expects {} (and these divisible by groups={})",
                       info.op, x.sizes(), x.sizes()[channel], weight.sizes(), weight.size(0), params.groups);
    }
    const int64_t out = (Size(weight.size(1)) * params.groups).value();
    if (bias.defined() && (bias.dim() != 1 || bias.size(0) != out || bias.dtype() != x.dtype())) {
      throw ShapeError("{}: expected a bias {} [{}], got {}", info.op, name(x.dtype()), out, describe(bias));
    }
    if (bias.defined() && bias.device() != x.device()) {
      throw DeviceError("{}: all tensors must be on one device, got {} and {}", info.op, x.device(), bias.device());
    }
    sizes[channel] = out;
    for (size_t d = first; d < 2; ++d) {
      if (output_padding[d] < 0 || output_padding[d] >= std::max(params.stride[d], params.dilation[d])) {
        throw ValueError("{}: output_padding must be at least 0 and below the larger of stride and dilation, got {}",
                         info.op, several(&output_padding[first], spatial));
      }
      const int dim = x.dim() - 2 + static_cast<int>(d);
      const Size reach = Size(params.dilation[d]) * (weight.size(static_cast<int64_t>(d) + spatial) - 1);
      const Size steps = Size(x.sizes()[dim] - 1) * params.stride[d];
      sizes[dim] = (steps - params.padding[d] - params.padding[d] + reach + output_padding[d] + 1).value();
      if (x.sizes()[dim] < 1 || sizes[dim] < 1) {
        throw ShapeError("{}: input {} with weight {} and padding {} leaves no result", info.op, x.sizes(),
                         weight.sizes(), several(&params.padding[first], spatial));
      }
    }
  });
  // If output_padding is a stride or more, a convolution of the result has more rows than x: rows of zeros, which
  // change nothing.
  for (size_t d = first; d < 2; ++d) {
    if (output_padding[d] < params.stride[d]) continue;
    Shape more = x.sizes();
    const int dim = x.dim() - 2 + static_cast<int>(d);
    more[dim] = output_padding[d] / params.stride[d];
    x = cat({x, zeros(more, x.options())}, dim, info.where);
  }
  return autograd::detail::convolution_backward_input(info, x, weight, bias, sizes, params);
}

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dFuncOptions& options,
              SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"conv1d">(where, x, weight, bias))
      return conv1d(in[0], in[1], in[2], options, where);
  }
  return convolve({.op = "conv1d", .where = where}, x, weight, bias, in_two(options), options.padding.same(), 1);
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dFuncOptions& options,
              SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"conv2d">(where, x, weight, bias))
      return conv2d(in[0], in[1], in[2], options, where);
  }
  return convolve({.op = "conv2d", .where = where}, x, weight, bias, in_two(options), options.padding.same(), 2);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvTranspose1dFuncOptions& o,
                        SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"conv_transpose1d">(where, x, weight, bias))
      return conv_transpose1d(in[0], in[1], in[2], o, where);
  }
  return transpose_convolve({.op = "conv_transpose1d", .where = where}, x, weight, bias,
                            {{1, o.stride}, {0, o.padding}, {1, o.dilation}, o.groups}, {0, o.output_padding}, 1);
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvTranspose2dFuncOptions& o,
                        SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"conv_transpose2d">(where, x, weight, bias))
      return conv_transpose2d(in[0], in[1], in[2], o, where);
  }
  return transpose_convolve({.op = "conv_transpose2d", .where = where}, x, weight, bias,
                            {o.stride, o.padding, o.dilation, o.groups}, o.output_padding, 2);
}

}  // namespace brigade
