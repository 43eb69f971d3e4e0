// Device-independent parts of batch norm: checks and allocation of results.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/batch_norm.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/elementwise.h>

#include <string>

namespace brigade::kernels {

namespace {

BatchNormLayout layout_of(const Tensor& x) {
  if (x.dim() < 2) throw ShapeError("batch_norm: expected [N, C, ...], got {}", x.sizes());
  BatchNormLayout layout{x.sizes()[0], x.sizes()[1], 1};
  for (int d = 2; d < x.dim(); ++d)
    layout.area *= x.sizes()[d];
  return layout;
}

void check_device_in_batch_norm(const Tensor& tensor, const Tensor& x, const char* what) {
  if (tensor.device() == x.device()) return;
  throw DeviceError("batch_norm: {} is on {}, the input on {}", what, tensor.device(), x.device());
}

void check_channels(const Tensor& tensor, const Tensor& x, const char* what) {
  if (!tensor.defined()) return;
  const int64_t channels = x.sizes()[1];
  if (tensor.dim() != 1 || tensor.sizes()[0] != channels || !tensor.is_contiguous()) {
    throw ShapeError("batch_norm: {} must be [{}] and contiguous, got {} with strides {}", what, channels,
                     describe(tensor), tensor.strides());
  }
  if (!is_floating_point(tensor.dtype())) {
    throw DTypeError("batch_norm: {} must have a floating dtype, got {}", what, name(tensor.dtype()));
  }
  check_device_in_batch_norm(tensor, x, what);
}

DType statistics_dtype(const Tensor& x) { return is_half(x.dtype()) ? kFloat32 : x.dtype(); }

}  // namespace

BatchNormPlan prepare_batch_norm_moments(const Tensor& x) { return {layout_of(x), contiguous(x), {}}; }

BatchNormPlan prepare_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                                 const Tensor& running_var) {
  BatchNormPlan plan = prepare_batch_norm_moments(x);
  check_channels(weight, x, "weight");
  check_channels(bias, x, "bias");
  check_channels(running_mean, x, "running_mean");
  check_channels(running_var, x, "running_var");
  const TensorOptions options{statistics_dtype(x), x.device()};
  plan.result = {empty(x.sizes(), x.options()), empty({plan.layout.channels}, options),
                 empty({plan.layout.channels}, options)};
  return plan;
}

void check_batch_norm_mode(const BatchNormPlan& plan, const Tensor& running_mean, const Tensor& running_var,
                           bool training) {
  if (training && plan.layout.count() == 1) {
    throw ValueError("Expected more than 1 value per channel when training, got input size {}", plan.x.sizes());
  }
  if (running_mean.defined() != running_var.defined()) {
    throw ValueError("batch_norm: running_mean and running_var must either both be there or neither; got only {}",
                     running_mean.defined() ? "running_mean" : "running_var");
  }
  if (!training && !running_mean.defined()) {
    throw ValueError(
        "batch_norm: evaluation needs running_mean and running_var; call train() or track running statistics");
  }
}

BatchNorm batch_norm_of_nothing(const BatchNormPlan& plan) {
  fill(plan.result.mean, 0);
  fill(plan.result.invstd, 0);
  return plan.result;
}

BatchNormGrads batch_norm_gradients_of_nothing(const BatchNormGradientPlan& plan) {
  const TensorOptions options{plan.parameter_dtype, plan.x.device()};
  BatchNormGrads result{empty(plan.x.sizes(), plan.x.options()), empty({plan.layout.channels}, options),
                        empty({plan.layout.channels}, options)};
  fill(result.weight, 0);
  fill(result.bias, 0);
  return result;
}

void check_batch_norm_pairs(const Tensor& pairs, const Tensor& x, const char* what) {
  const Shape sizes{2, x.sizes()[1]};
  if (pairs.dtype() != kFloat64 || pairs.sizes() != sizes || !pairs.is_contiguous()) {
    throw ShapeError("batch_norm: {} must be float64 {}, got {}", what, sizes, describe(pairs));
  }
  check_device_in_batch_norm(pairs, x, what);
}

BatchNormRows prepare_batch_norm_combine(const Tensor& rows) {
  if (rows.dtype() != kFloat64 || rows.dim() != 2 || rows.size(1) % 2 != 1) {
    throw ShapeError("batch_norm: moments to combine must be float64 [batches, 2 C + 1], got {}", describe(rows));
  }
  const int64_t channels = (rows.size(1) - 1) / 2;
  return {rows.size(0), channels, contiguous(rows), empty({2, channels}, rows.options())};
}

BatchNormGradientPlan prepare_batch_norm_gradient(const Tensor& grad, const Tensor& x, const Tensor& weight,
                                                  const Tensor& mean, const Tensor& invstd) {
  const BatchNormLayout layout = layout_of(x);
  check_gradient_like(grad, x, "batch_norm backward");
  check_device_in_batch_norm(grad, x, "the gradient");
  check_channels(weight, x, "weight");
  check_channels(mean, x, "mean");
  check_channels(invstd, x, "invstd");
  return {layout, contiguous(x), contiguous(grad), weight.defined() ? weight.dtype() : statistics_dtype(x)};
}

}  // namespace brigade::kernels
