// Checks groups, parameters and statistics, makes them dense, and allocates the results.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/check_floating.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/common/group_norm.h>

#include <string>

namespace brigade::kernels {

namespace {

GroupNormLayout layout_of(const Tensor& x, int64_t groups) {
  check_floating(x.dtype(), "group_norm");
  if (x.dim() < 2) throw ShapeError("group_norm: expected [N, C, ...], got {}", x.sizes());
  const int64_t channels = x.sizes()[1];
  if (groups < 1 || channels % groups != 0) {
    throw ValueError(
        "group_norm: expected a number of channels that is divisible by num_groups, got input {} and num_groups {}",
        x.sizes(), groups);
  }
  GroupNormLayout layout{x.sizes()[0], groups, channels / groups, 1};
  for (int d = 2; d < x.dim(); ++d)
    layout.area *= x.sizes()[d];
  if (layout.length() == 0)
    throw ShapeError("group_norm: expected channels and positions to normalise over, got {}", x.sizes());
  return layout;
}

void check_device_in_group_norm(const Tensor& tensor, const Tensor& x, const char* which) {
  if (tensor.device() == x.device()) return;
  throw DeviceError("group_norm: {} is on {}, the input on {}", which, tensor.device(), x.device());
}

void check_parameter(const Tensor& tensor, const Tensor& x, const char* which) {
  if (!tensor.defined()) return;
  const int64_t channels = x.sizes()[1];
  if (tensor.sizes() != Shape{channels}) {
    throw ShapeError("group_norm: {} must be [{}], got {}", which, channels, describe(tensor));
  }
  if (!is_floating_point(tensor.dtype())) {
    throw DTypeError("group_norm: {} must have a floating dtype, got {}", which, name(tensor.dtype()));
  }
  check_device_in_group_norm(tensor, x, which);
}

DType statistics_dtype(const Tensor& x) { return is_half(x.dtype()) ? kFloat32 : x.dtype(); }

void check_statistics(const Tensor& tensor, const Tensor& x, const GroupNormLayout& layout, const char* which) {
  const Shape sizes{layout.batch, layout.groups};
  if (tensor.sizes() != sizes || tensor.dtype() != statistics_dtype(x) || !tensor.is_contiguous()) {
    throw ShapeError("group_norm: {} must be {} {} as forward gave it, got {}", which, name(statistics_dtype(x)), sizes,
                     describe(tensor));
  }
  check_device_in_group_norm(tensor, x, which);
}

Tensor in_dtype(const Tensor& parameter, DType dtype) {
  return parameter.defined() ? contiguous(cast(parameter, dtype)) : parameter;
}

}  // namespace

GroupNormPlan prepare_group_norm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias) {
  GroupNormPlan plan;
  plan.layout = layout_of(x, groups);
  check_parameter(weight, x, "weight");
  check_parameter(bias, x, "bias");
  const bool alike =
      (!weight.defined() || weight.dtype() == x.dtype()) && (!bias.defined() || bias.dtype() == x.dtype());
  plan.x = contiguous(x);
  plan.parameter_dtype = alike ? x.dtype() : statistics_dtype(x);
  plan.weight = in_dtype(weight, plan.parameter_dtype);
  plan.bias = in_dtype(bias, plan.parameter_dtype);
  const TensorOptions options{statistics_dtype(x), x.device()};
  const Shape statistics{plan.layout.batch, groups};
  plan.result = {empty(x.sizes(), x.options()), empty(statistics, options), empty(statistics, options)};
  return plan;
}

GroupNormGradientPlan prepare_group_norm_gradient(const Tensor& grad, const Tensor& x, const Tensor& weight,
                                                  const Tensor& mean, const Tensor& rstd,
                                                  const GroupNormBackwardOptions& options) {
  GroupNormGradientPlan plan;
  plan.layout = layout_of(x, options.groups);
  check_gradient_like(grad, x, "group_norm backward");
  check_device_in_group_norm(grad, x, "the gradient");
  check_parameter(weight, x, "weight");
  check_statistics(mean, x, plan.layout, "mean");
  check_statistics(rstd, x, plan.layout, "rstd");
  plan.grad = contiguous(grad);
  plan.x = contiguous(x);
  plan.parameter_dtype = !weight.defined() || weight.dtype() == x.dtype() ? x.dtype() : statistics_dtype(x);
  plan.weight = in_dtype(weight, plan.parameter_dtype);
  if (options.input) plan.result = empty(x.sizes(), x.options());
  return plan;
}

}  // namespace brigade::kernels
