#include <brigade/autograd/ops/interpolate.h>

#include <brigade/autograd/detail/located.h>
#include <brigade/autograd/record.h>

#include <cmath>

namespace brigade {

namespace {

struct InterpolateNode final : autograd::Node {
  Shape x_sizes;
  kernels::Interpolate2dParams params;
  void backward(autograd::BackwardContext& context) override {
    context.set(0, kernels::interpolate2d_backward(context.grad(), x_sizes, params));
  }
};

kernels::Interpolate2dParams params_for(const Tensor& x, const InterpolateOptions& options) {
  if (options.size.has_value() == options.scale_factor.has_value()) {
    throw ValueError(options.size ? "interpolate: expected size or scale_factor, got both"
                                  : "interpolate: expected size or scale_factor, got neither");
  }
  if (x.dim() != 4) throw ShapeError("interpolate: expected [N, C, H, W], got " + to_string(x.sizes()));
  kernels::Interpolate2dParams params{.mode = options.mode, .align_corners = options.align_corners};
  if (options.size) {
    params.size = *options.size;
    return params;
  }
  params.scale_factor = *options.scale_factor;
  for (size_t d = 0; d < 2; ++d) {
    const double factor = params.scale_factor[d];
    if (!(factor > 0) || !std::isfinite(factor))
      throw ValueError("interpolate: a scale_factor must be above 0, got " + std::to_string(factor));
    const double size = std::floor(static_cast<double>(x.size(static_cast<int64_t>(d) + 2)) * factor);
    params.size[d] = static_cast<int64_t>(std::min(size, 0x1p62));
  }
  return params;
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& options, SourceLocation where) {
  kernels::Interpolate2dParams params;
  Tensor y = autograd::detail::located(where, [&] {
    params = params_for(x, options);
    return kernels::interpolate2d(x, params);
  });
  if (auto* node = autograd::record<InterpolateNode>({.op = "interpolate", .where = where}, {x}, y)) {
    node->x_sizes = x.sizes();
    node->params = params;
  }
  return y;
}

}  // namespace brigade
