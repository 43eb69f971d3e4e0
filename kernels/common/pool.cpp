// Sizes, windows and checks of pooling and interpolation.
#include <brigade/kernels/pool.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/pool.h>

#include <algorithm>
#include <string>

namespace brigade::kernels {

// --- Sizes of results and windows along an axis, sliding or adaptive, and their checks.

namespace {

int64_t out_size(int64_t in, int64_t reach, int64_t stride, int64_t padding, bool ceil_mode) {
  const int64_t span = in + 2 * padding - reach + (ceil_mode ? stride - 1 : 0);
  int64_t out = span < 0 ? 0 : span / stride + 1;
  // The last window must start inside the input or its left padding.
  if (ceil_mode && (out - 1) * stride >= in + padding) --out;
  return out;
}

// A parameter as the caller wrote it, for error messages.
std::string both(const Pool2dParams& p, const std::array<int64_t, 2>& values) {
  if (p.is_1d) return std::to_string(values[1]);
  return "[" + std::to_string(values[0]) + ", " + std::to_string(values[1]) + "]";
}
std::string input(const Pool2dParams& p, const Shape& x) {
  if (!p.is_1d) return to_string(x);
  Shape sequence;
  for (int d = 0; d < x.size(); ++d)
    if (d != x.size() - 2) sequence.push_back(x[d]);
  return to_string(sequence);
}
std::string name_of(PoolKind kind, const Pool2dParams& p) {
  const std::string name = std::string(kind == PoolKind::Max ? "max_pool" : "avg_pool") + (p.is_1d ? "1d" : "2d");
  return p.output_size == std::array<int64_t, 2>{0, 0} ? name : "adaptive_" + name;
}

PoolAxis<int64_t> sliding_axis(int64_t in, const Pool2dParams& p, size_t d, const std::string& what) {
  const int64_t kernel = p.kernel_size[d];
  const int64_t stride = p.stride == std::array<int64_t, 2>{0, 0} ? kernel : p.stride[d];
  if (kernel < 1 || stride < 1 || p.dilation[d] < 1)
    throw ValueError("{}: kernel_size, stride and dilation must be at least 1", what);
  if (std::max({kernel, stride, p.dilation[d]}) > INT32_MAX)
    throw ValueError("{}: kernel_size, stride and dilation must be below 2^31", what);
  if (p.padding[d] < 0 || p.padding[d] > kernel / 2) {
    throw ValueError("{}: padding must be between 0 and half of kernel_size, got {} for kernel_size {}", what,
                     p.padding[d], kernel);
  }
  const int64_t reach = (kernel - 1) * p.dilation[d] + 1;
  const PoolAxis<int64_t> axis{in,           out_size(in, reach, stride, p.padding[d], p.ceil_mode),
                               kernel,       stride,
                               p.padding[d], p.dilation[d],
                               false,        p.count_include_pad};
  // With a dilation larger than the input, a window may skip over the input.
  for (int64_t o = 0; p.dilation[d] > 1 && p.padding[d] > 0 && o < axis.out; ++o) {
    const PoolRange<int64_t> window = axis.window(o);
    if (window.begin < window.end) continue;
    throw ValueError("{}: window {} has no element but padding; make dilation or padding smaller", what, o);
  }
  return axis;
}

PoolAxis<int64_t> adaptive_axis(int64_t in, int64_t out, const std::string& what) {
  if (out < 1) throw ValueError("{}: output_size must be at least 1, got {}", what, out);
  // Parts of equal size are sliding windows with stride = size, which the kernels compute faster.
  if (in % out == 0) return {in, out, in / out, in / out, 0, 1, false, false};
  return {in, out, 1, 1, 0, 1, true, false};
}

}  // namespace

PoolPlan plan_pool(const Shape& x, const Pool2dParams& p, PoolKind kind) {
  const std::string what = name_of(kind, p);
  if (x.size() != 3 && x.size() != 4) throw ShapeError("{}: expected [N, C, H, W] or [C, H, W], got {}", what, x);
  const int dims = x.size();
  const bool adaptive = p.output_size != std::array<int64_t, 2>{0, 0};
  const auto axis = [&](size_t d) {
    const int64_t in = x[dims - 2 + static_cast<int>(d)];
    return adaptive ? adaptive_axis(in, p.output_size[d], what) : sliding_axis(in, p, d, what);
  };
  if (kind == PoolKind::Average && p.dilation != std::array<int64_t, 2>{1, 1})
    throw ValueError("{}: dilation is for max pooling, got {}", what, both(p, p.dilation));
  if (p.divisor_override == 0) throw ValueError("{}: divisor_override must not be 0", what);
  PoolPlan plan{1, {axis(0), axis(1), p.divisor_override.value_or(0)}, x};
  const PoolAxis<int64_t>& rows = plan.plane.rows;
  const PoolAxis<int64_t>& columns = plan.plane.columns;
  if (rows.in < 1 || columns.in < 1 || rows.out < 1 || columns.out < 1) {
    throw ShapeError("{}: input {} is too small{}{}", what, input(p, x),
                     adaptive ? " to be pooled" : " for kernel_size ", adaptive ? "" : both(p, p.kernel_size));
  }
  for (int d = 0; d < dims - 2; ++d)
    plan.planes *= x[d];
  plan.out_sizes[dims - 2] = rows.out;
  plan.out_sizes[dims - 1] = columns.out;
  return plan;
}

PoolPlan plan_pool_backward(const Tensor& grad, const Shape& x, const Pool2dParams& params, PoolKind kind) {
  PoolPlan plan = plan_pool(x, params, kind);
  if (grad.sizes() == plan.out_sizes) return plan;
  throw ShapeError("{} backward: expected a gradient {}, got {}", name_of(kind, params), plan.out_sizes,
                   describe(grad));
}

Tensor prepare_max_pool_gather(const Tensor& x, const Tensor& indices) {
  bool fits = x.dim() == indices.dim() && x.dim() >= 2;
  for (int d = 0; fits && d < x.dim() - 2; ++d)
    fits = x.sizes()[d] == indices.sizes()[d];
  if (!fits) {
    throw ShapeError("max_pool2d gather: expected indices with the planes of {}, got {}", x.sizes(), describe(indices));
  }
  if (indices.dtype() != kInt64)
    throw DTypeError("max_pool2d gather: expected int64 indices, got {}", describe(indices));
  return empty(indices.sizes(), x.options());
}

// --- Checks the sizes, modes and gradients of interpolation.

Shape check_interpolate(const Shape& x_sizes, const Interpolate2dParams& p) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (x_sizes.size() != 4) throw ShapeError("interpolate: expected [N, C, H, W], got {}", x_sizes);
  for (size_t d = 0; d < 2; ++d) {
    const int64_t in = x_sizes[static_cast<int>(d) + 2];
    if (in < 1 || p.size[d] < 1 || in > kMost || p.size[d] > kMost) {
      throw ShapeError("interpolate: height and width must be 1 to 2^30, got an input {} and a size [{}, {}]", x_sizes,
                       p.size[0], p.size[1]);
    }
    if (!(p.scale_factor[d] >= 0))
      throw ValueError("interpolate: a scale_factor must be above 0, got {}", p.scale_factor[d]);
  }
  if (p.align_corners && p.mode == InterpolateMode::Nearest)
    throw ValueError("interpolate: align_corners is for the modes that weigh elements; leave it out for Nearest");
  return {x_sizes[0], x_sizes[1], p.size[0], p.size[1]};
}

void check_interpolate_backward(const Tensor& grad, const Shape& x_sizes, const Interpolate2dParams& params) {
  const Shape expected = check_interpolate(x_sizes, params);
  if (grad.sizes() == expected) return;
  throw ShapeError("interpolate backward: expected a gradient {}, got {}", expected, describe(grad));
}

}  // namespace brigade::kernels
