// The node of batch norm: backward by a kernel from the statistics it used, or by operations.
#include <brigade/autograd/ops/normalization.h>

#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/normalization.h>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;

Tensor dense(const Tensor& x) { return x.defined() ? kernels::contiguous(x) : x; }

struct BatchNormNode final : autograd::Node {
  // Saves the statistics as they were used, so that a later change of the running ones (another forward, a broadcast)
  // has no effect.
  autograd::SavedTensor x, weight, mean, invstd;
  bool training = true;
  double eps = 0;
  DType weight_dtype = kFloat32, bias_dtype = kFloat32;

  void backward(BackwardContext& context) override {
    if (context.create_graph()) return backward_with_graph(context);
    const kernels::BatchNormGrads grads =
        kernels::batch_norm_backward(context.grad(), x.unpack(*this), dense(weight.unpack(*this)), mean.unpack(*this),
                                     invstd.unpack(*this), training);
    if (context.needs_input_grad(0)) context.set(0, grads.x);
    if (context.needs_input_grad(1)) context.set(1, in_dtype(grads.weight, weight_dtype));
    if (context.needs_input_grad(2)) context.set(2, in_dtype(grads.bias, bias_dtype));
  }
  // The same by differentiable operations. Running statistics are constants.
  void backward_with_graph(BackwardContext& context) {
    const Tensor input = x.unpack(*this);
    const Tensor gain = weight.unpack(*this);
    const Tensor grad = widened(context.grad());
    Shape dims{0};
    Shape channels{input.size(1)};
    for (int d = 2; d < input.dim(); ++d) {
      dims.push_back(d);
      channels.push_back(1);
    }
    const auto per_channel = [&](const Tensor& tensor) { return tensor.reshape(channels, {}); };
    Normalised normalised;
    if (training) {
      normalised = normalise(widened(input), dims, eps, true);
    } else {
      const Tensor rstd = per_channel(invstd.unpack(*this));
      normalised = {(widened(input) - per_channel(mean.unpack(*this))) * rstd, rstd};
    }
    if (context.needs_input_grad(0)) {
      const Tensor slope = gain.defined() ? grad * per_channel(gain) : grad;
      const Tensor result = training ? normalised_gradient(slope, normalised, dims, true) : slope * normalised.rstd;
      context.set(0, in_dtype(result, input.dtype()));
    }
    if (context.needs_input_grad(1))
      context.set(1, in_dtype(sum(grad * normalised.values, dims, false, {}), weight_dtype));
    if (context.needs_input_grad(2)) context.set(2, in_dtype(sum(grad, dims, false, {}), bias_dtype));
  }
};

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, bool training, double momentum, double eps, SourceLocation where) {
  // The kernels need dense memory: statistics that are not dense are updated in a copy.
  const Tensor means = dense(running_mean);
  const Tensor variances = dense(running_var);
  const kernels::BatchNorm result = autograd::detail::located(where, [&] {
    return kernels::batch_norm(x, dense(weight), dense(bias), means, variances, training, momentum, eps);
  });
  if (training && !means.is_same(running_mean)) kernels::copy(running_mean, means);
  if (training && !variances.is_same(running_var)) kernels::copy(running_var, variances);
  if (training && running_mean.defined()) running_mean.bump_version();
  if (training && running_var.defined()) running_var.bump_version();
  if (auto* node = autograd::record<BatchNormNode>({.op = "batch_norm", .where = where}, {x, weight, bias}, result.y)) {
    node->x.save_input(*node, x);
    node->weight.save_input(*node, weight);
    node->mean.save_input(*node, result.mean);
    node->invstd.save_input(*node, result.invstd);
    node->training = training;
    node->eps = eps;
    if (weight.defined()) node->weight_dtype = weight.dtype();
    if (bias.defined()) node->bias_dtype = bias.dtype();
  }
  return result.y;
}

}  // namespace brigade
