// Device-independent parts of the normalizations: checks and allocation of results.
#include <brigade/kernels/common/normalization.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/reduce.h>

namespace brigade::kernels {

// --- Layer norm and RMS norm, with the last step of a parameter's gradient.

namespace {

// Returns the dimensions before normalized_shape. Throws unless x ends in normalized_shape.
Shape leading_sizes(const char* what, const Tensor& x, const Shape& normalized_shape) {
  check_floating(x.dtype(), what);
  const int leading = x.dim() - normalized_shape.size();
  bool fits = leading >= 0 && !normalized_shape.empty();
  Shape sizes;
  for (int d = 0; d < x.dim() && fits; ++d) {
    if (d < leading) {
      sizes.push_back(x.sizes()[d]);
    } else {
      fits = x.sizes()[d] == normalized_shape[d - leading] && x.sizes()[d] > 0;
    }
  }
  if (!fits) {
    throw ShapeError(
        "{}: expected an input whose last dimensions are the normalized_shape {} (at "
        "least one, none of them 0), got {}",
        what, normalized_shape, x.sizes());
  }
  return sizes;
}

void check_device(const char* what, const Tensor& tensor, const Tensor& x, const char* which) {
  if (tensor.device() == x.device()) return;
  throw DeviceError("{}: {} is on {}, the input on {}", what, which, tensor.device(), x.device());
}

void check_parameter(const char* what, const Tensor& tensor, const Tensor& x, const Shape& normalized_shape,
                     const char* which) {
  if (!tensor.defined()) return;
  if (tensor.sizes() != normalized_shape) {
    throw ShapeError("{}: {} must be {}, got {}", what, which, normalized_shape, describe(tensor));
  }
  if (!is_floating_point(tensor.dtype())) {
    throw DTypeError("{}: {} must have a floating dtype, got {}", what, which, name(tensor.dtype()));
  }
  check_device(what, tensor, x, which);
}

DType statistics_dtype(const Tensor& x) { return is_half(x.dtype()) ? kFloat32 : x.dtype(); }

void check_statistics(const char* what, const Tensor& tensor, const Tensor& x, const Shape& leading,
                      const char* which) {
  if (tensor.sizes() != leading || tensor.dtype() != statistics_dtype(x) || !tensor.is_contiguous()) {
    throw ShapeError("{}: {} must be {} {} as forward gave it, got {}", what, which, name(statistics_dtype(x)), leading,
                     describe(tensor));
  }
  check_device(what, tensor, x, which);
}

Tensor in_dtype(const Tensor& parameter, DType dtype) {
  return parameter.defined() ? contiguous(cast(parameter, dtype)) : parameter;
}

}  // namespace

LayerNormPlan prepare_layer_norm(const char* what, const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                                 const Tensor& bias, bool centered) {
  const Shape leading = leading_sizes(what, x, normalized_shape);
  check_parameter(what, weight, x, normalized_shape, "weight");
  check_parameter(what, bias, x, normalized_shape, "bias");
  const bool alike =
      (!weight.defined() || weight.dtype() == x.dtype()) && (!bias.defined() || bias.dtype() == x.dtype());
  LayerNormPlan plan;
  plan.rows = leading.numel();
  plan.length = normalized_shape.numel();
  plan.x = contiguous(x);
  plan.parameter_dtype = alike ? x.dtype() : statistics_dtype(x);
  plan.weight = in_dtype(weight, plan.parameter_dtype);
  plan.bias = in_dtype(bias, plan.parameter_dtype);
  plan.y = empty(x.sizes(), x.options());
  const TensorOptions options{statistics_dtype(x), x.device()};
  if (centered) plan.mean = empty(leading, options);
  plan.rstd = empty(leading, options);
  return plan;
}

LayerNormGradientPlan prepare_layer_norm_gradient(const char* what, const Tensor& grad, const Tensor& x,
                                                  const Tensor& weight, const Tensor& mean, const Tensor& rstd,
                                                  const LayerNormBackwardOptions& options, bool centered) {
  const Shape leading = leading_sizes(what, x, options.normalized_shape);
  check_gradient_like(grad, x, what);
  check_device(what, grad, x, "the gradient");
  check_parameter(what, weight, x, options.normalized_shape, "weight");
  if (centered) check_statistics(what, mean, x, leading, "mean");
  check_statistics(what, rstd, x, leading, "rstd");
  LayerNormGradientPlan plan;
  plan.rows = leading.numel();
  plan.length = options.normalized_shape.numel();
  plan.grad = contiguous(grad);
  plan.x = contiguous(x);
  plan.parameter_dtype = !weight.defined() || weight.dtype() == x.dtype() ? x.dtype() : statistics_dtype(x);
  plan.weight = in_dtype(weight, plan.parameter_dtype);
  if (options.input) plan.result = empty(x.sizes(), x.options());
  return plan;
}

Tensor sum_parts(const Tensor& parts, const ParameterGrad& to, const Shape& normalized_shape) {
  if (!to.wanted) return {};
  const Tensor out = to.out.defined() ? to.out : empty(normalized_shape, {to.dtype, parts.device()});
  const bool accumulate = to.accumulate && to.out.defined();
  // Sum in the type of the parts, so that the result is rounded once.
  const DType dtype = parts.dtype();
  const Tensor sums = out.dtype() == dtype ? out : accumulate ? cast(out, dtype) : empty_like(out, dtype);
  sum(parts, {.dims = {0}, .out = sums, .accumulate = accumulate});
  if (!sums.is_same(out)) copy(out, sums);
  return out;
}

// --- Group norm: checks groups, parameters and statistics, makes them dense, and allocates the results.

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

void check_statistics(const Tensor& tensor, const Tensor& x, const GroupNormLayout& layout, const char* which) {
  const Shape sizes{layout.batch, layout.groups};
  if (tensor.sizes() != sizes || tensor.dtype() != statistics_dtype(x) || !tensor.is_contiguous()) {
    throw ShapeError("group_norm: {} must be {} {} as forward gave it, got {}", which, name(statistics_dtype(x)), sizes,
                     describe(tensor));
  }
  check_device_in_group_norm(tensor, x, which);
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

// --- Batch norm.

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
