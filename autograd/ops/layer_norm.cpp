// The nodes of layer norm and RMS norm: backward by a kernel, or by operations.
#include <brigade/autograd/ops/normalization.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/normalization.h>

#include <utility>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;

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
  // Backward by `kernel(options)`, which returns LayerNormGrads.
  template <class Kernel>
  void backward_by(BackwardContext& context, const Kernel& kernel) {
    context.write(1, 2, [&](const auto& to_weight, const auto& to_bias) {
      const kernels::LayerNormBackwardOptions options{
          normalized_shape,
          context.needs_input_grad(0),
          {context.needs_input_grad(1), weight_dtype, to_weight.out, to_weight.accumulate},
          {context.needs_input_grad(2), bias_dtype, to_bias.out, to_bias.accumulate}};
      const kernels::LayerNormGrads grads = kernel(options);
      if (options.input) context.set(0, grads.x);
      return std::pair(grads.weight, grads.bias);
    });
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
      const Tensor slope = gain.defined() ? grad * gain : grad;
      context.set(0, in_dtype(normalised_gradient(slope, normalised, dims, centered), input.dtype()));
    }
    if (context.needs_input_grad(1))
      context.set(1, in_dtype(sum_to(grad * normalised.values, normalized_shape, {}), weight_dtype));
    if (context.needs_input_grad(2)) context.set(2, in_dtype(sum_to(grad, normalized_shape, {}), bias_dtype));
  }
};

struct LayerNormNode final : RowNormNode {
  void backward(BackwardContext& context) override {
    if (context.create_graph()) return backward_with_graph(context, true);
    backward_by(context, [&](const kernels::LayerNormBackwardOptions& options) {
      return kernels::layer_norm_backward(context.grad(), x.unpack(*this), weight.unpack(*this), mean.unpack(*this),
                                          rstd.unpack(*this), options);
    });
  }
};

struct RmsNormNode final : RowNormNode {
  void backward(BackwardContext& context) override {
    if (context.create_graph()) return backward_with_graph(context, false);
    backward_by(context, [&](const kernels::LayerNormBackwardOptions& options) {
      return kernels::rms_norm_backward(context.grad(), x.unpack(*this), weight.unpack(*this), rstd.unpack(*this),
                                        options);
    });
  }
};

// The machine epsilon of the dtype of the computation: float32 for half types, as in PyTorch.
double epsilon(DType dtype) { return dtype == kFloat64 ? 0x1p-52 : 0x1p-23; }

}  // namespace

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias, double eps,
                  SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"layer_norm">(where, x, weight, bias))
      return layer_norm(in[0], normalized_shape, in[1], in[2], eps, where);
  }
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
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"rms_norm">(where, x, weight))
      return rms_norm(in[0], normalized_shape, in[1], eps, where);
  }
  const double added = eps.value_or(epsilon(x.dtype()));
  const kernels::RmsNorm result = located(where, [&] { return kernels::rms_norm(x, normalized_shape, weight, added); });
  if (auto* node = record<RmsNormNode>({.op = "rms_norm", .where = where}, {x, weight}, result.y)) {
    node->save(x, normalized_shape, weight, Tensor(), added);
    node->rstd.save_input(*node, result.rstd);
  }
  return result.y;
}

}  // namespace brigade
