// The nodes of interpolate and its backward; sequences are images of height 1.
#include <brigade/autograd/ops/pool.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>

#include <algorithm>
#include <cmath>

namespace brigade {
namespace {

using autograd::BackwardContext;
using kernels::Interpolate2dParams;

// Resizing is linear: the backward of its backward is resizing again.
Tensor resize(const Tensor& x, const Interpolate2dParams& params, SourceLocation where);

struct InterpolateBackwardNode final : autograd::Node {
  Interpolate2dParams params;
  void backward(BackwardContext& context) override {
    context.set(0, context.create_graph() ? resize(context.grad(), params, where)
                                          : kernels::interpolate2d(context.grad(), params));
  }
};

struct InterpolateNode final : autograd::Node {
  Shape x_sizes;
  Interpolate2dParams params;
  void backward(BackwardContext& context) override {
    Tensor result = kernels::interpolate2d_backward(context.grad(), x_sizes, params);
    if (context.create_graph()) {
      if (auto* node = autograd::record<InterpolateBackwardNode>({.op = "interpolate_backward", .where = where},
                                                                 {context.grad()}, result)) {
        node->params = params;
      }
    }
    context.set(0, result);
  }
};

Tensor resize(const Tensor& x, const Interpolate2dParams& params, SourceLocation where) {
  Tensor y = autograd::detail::located(where, [&] { return kernels::interpolate2d(x, params); });
  if (auto* node = autograd::record<InterpolateNode>({.op = "interpolate", .where = where}, {x}, y)) {
    node->x_sizes = x.sizes();
    node->params = params;
  }
  return y;
}

void check_dims(const Tensor& x, InterpolateMode mode) {
  const bool sequences = mode == InterpolateMode::Nearest || mode == InterpolateMode::Linear;
  const bool images = mode != InterpolateMode::Linear;
  if ((sequences && x.dim() == 3) || (images && x.dim() == 4)) return;
  throw ShapeError("interpolate: expected {}, got {}",
                   sequences && images ? "[N, C, L] or [N, C, H, W]"
                   : sequences         ? "[N, C, L] for Linear"
                                       : "[N, C, H, W]",
                   x.sizes());
}

// Puts `values`, one for each of `count` dimensions, at the end of `to`.
template <class Values, class Number>
void set_last(const Values& values, const char* what, size_t count, std::array<Number, 2>& to) {
  const auto given = static_cast<size_t>(values.size());
  if (given != count) {
    throw ValueError("interpolate: expected {} as {}, got {}", count == 1 ? "1 number" : "2 numbers", what, given);
  }
  std::copy(values.begin(), values.end(), to.end() - count);
}

// Sequences are images of height 1.
Interpolate2dParams params_for(const Tensor& x, const InterpolateOptions& options) {
  if (options.size.has_value() == options.scale_factor.has_value()) {
    throw ValueError(options.size ? "interpolate: expected size or scale_factor, got both"
                                  : "interpolate: expected size or scale_factor, got neither");
  }
  check_dims(x, options.mode);
  const auto count = static_cast<size_t>(x.dim() - 2);
  Interpolate2dParams params{
      .size = {1, 1}, .mode = options.mode, .align_corners = options.align_corners, .is_1d = x.dim() == 3};
  if (options.size) {
    set_last(*options.size, "size", count, params.size);
    return params;
  }
  set_last(*options.scale_factor, "scale_factor", count, params.scale_factor);
  for (size_t d = 2 - count; d < 2; ++d) {
    const double factor = params.scale_factor[d];
    if (!(factor > 0) || !std::isfinite(factor))
      throw ValueError("interpolate: a scale_factor must be above 0, got {}", factor);
    const double size = std::floor(static_cast<double>(x.size(static_cast<int64_t>(d) - 2)) * factor);
    params.size[d] = static_cast<int64_t>(std::min(size, 0x1p62));
  }
  return params;
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& options, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"interpolate">(where, x)) return interpolate(in[0], options, where);
  }
  const Interpolate2dParams params = autograd::detail::located(where, [&] { return params_for(x, options); });
  if (x.dim() == 3) return resize(x.unsqueeze(-2, where), params, where).squeeze(-2, where);
  return resize(x, params, where);
}

}  // namespace brigade
