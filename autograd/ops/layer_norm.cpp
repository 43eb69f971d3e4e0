// The nodes of layer norm and RMS norm: backward by a kernel, or by operations.
#include <brigade/autograd/ops/layer_norm.h>

#include <brigade/autograd/detail/located.h>
#include <brigade/autograd/detail/normalise.h>
#include <brigade/autograd/detail/reduction.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/layer_norm.h>

namespace brigade {

namespace {

using autograd::BackwardContext;
using autograd::record;
using autograd::SavedTensor;
using autograd::detail::in_dtype;
using autograd::detail::located;
using autograd::detail::normalise;
using autograd::detail::Normalised;
using autograd::detail::normalised_gradient;
using autograd::detail::widened;

// Inputs: x, weight, bias (RMS norm has none).
struct RowNormNode : autograd::Node {
  SavedTensor x, weight, mean, rstd;
  Shape normalized_shape;
  double eps = 0;
  DType weight_dtype = kFloat32, bias_dtype = kFloat32;

  void save(const Tensor& input, const Shape& shape, const Tensor& gain, const Tensor& shift, double epsilon) {
    eps = epsilon;
    x.save_input(*this, input);
    weight.save_input(*this, gain);
    normalized_shape = shape;
    if (gain.defined()) weight_dtype = gain.dtype();
    if (shift.defined()) bias_dtype = shift.dtype();
  }
  kernels::LayerNormBackwardOptions wanted(const BackwardContext& context) const {
    const auto parameter = [&](uint32_t i, DType dtype) {
      const auto destination = context.destination(i);
      return kernels::ParameterGrad{context.needs_input_grad(i), dtype, destination.out, destination.accumulate};
    };
    return {normalized_shape, context.needs_input_grad(0), parameter(1, weight_dtype), parameter(2, bias_dtype)};
  }
  static void hand_over(BackwardContext& context, const kernels::LayerNormBackwardOptions& options,
                        const kernels::LayerNormGrads& grads) {
    if (options.input) context.set(0, grads.x);
    const auto parameter = [&](uint32_t i, const kernels::ParameterGrad& asked, const Tensor& grad) {
      if (!asked.wanted) return;
      if (asked.out.defined()) {
        context.set_written(i);
      } else {
        context.set(i, grad);
      }
    };
    parameter(1, options.weight, grads.weight);
    parameter(2, options.bias, grads.bias);
  }
  // The same by differentiable operations.
  void backward_with_graph(BackwardContext& context, bool centered) {
    const Tensor input = x.unpack(*this);
    const Tensor gain = weight.unpack(*this);
    const Tensor grad = widened(context.grad());
    Shape dims;
    for (int d = -normalized_shape.size(); d < 0; ++d)
      dims.push_back(d);
    const Normalised normalised = normalise(widened(input), dims, eps, centered);
    if (context.needs_input_grad(0)) {
      const Tensor slope = gain.defined() ? mul(grad, gain, {}) : grad;
      context.set(0, in_dtype(normalised_gradient(slope, normalised, dims, centered), input.dtype()));
    }
    if (context.needs_input_grad(1))
      context.set(1, in_dtype(sum_to(mul(grad, normalised.values, {}), normalized_shape, {}), weight_dtype));
    if (context.needs_input_grad(2)) context.set(2, in_dtype(sum_to(grad, normalized_shape, {}), bias_dtype));
  }
};

struct LayerNormNode final : RowNormNode {
  void backward(BackwardContext& context) override {
    if (context.create_graph()) return backward_with_graph(context, true);
    const auto options = wanted(context);
    hand_over(context, options,
              kernels::layer_norm_backward(context.grad(), x.unpack(*this), weight.unpack(*this), mean.unpack(*this),
                                           rstd.unpack(*this), options));
  }
};

struct RmsNormNode final : RowNormNode {
  void backward(BackwardContext& context) override {
    if (context.create_graph()) return backward_with_graph(context, false);
    const auto options = wanted(context);
    hand_over(
        context, options,
        kernels::rms_norm_backward(context.grad(), x.unpack(*this), weight.unpack(*this), rstd.unpack(*this), options));
  }
};

// From 1 to the next number, in the type that is computed in: float32 for half types, as in PyTorch.
double epsilon(DType dtype) { return dtype == kFloat64 ? 0x1p-52 : 0x1p-23; }

}  // namespace

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias, double eps,
                  SourceLocation where) {
  const kernels::LayerNorm result =
      located(where, [&] { return kernels::layer_norm(x, normalized_shape, weight, bias, eps); });
  if (auto* node = record<LayerNormNode>({.op = "layer_norm", .where = where}, {x, weight, bias}, result.y)) {
    node->save(x, normalized_shape, weight, bias, eps);
    node->mean.save_input(*node, result.mean);
    node->rstd.save_input(*node, result.rstd);
  }
  return result.y;
}

Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, std::optional<double> eps,
                SourceLocation where) {
  const double added = eps.value_or(epsilon(x.dtype()));
  const kernels::RmsNorm result = located(where, [&] { return kernels::rms_norm(x, normalized_shape, weight, added); });
  if (auto* node = record<RmsNormNode>({.op = "rms_norm", .where = where}, {x, weight}, result.y)) {
    node->save(x, normalized_shape, weight, Tensor(), added);
    node->rstd.save_input(*node, result.rstd);
  }
  return result.y;
}

}  // namespace brigade
