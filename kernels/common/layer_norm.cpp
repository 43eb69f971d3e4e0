// Device-independent parts of layer norm and RMS norm: checks, allocation of results, the last step of a parameter's
// gradient.
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/check_floating.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/common/layer_norm.h>
#include <brigade/kernels/reduce.h>

#include <string>

namespace brigade::kernels {

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

}  // namespace brigade::kernels
