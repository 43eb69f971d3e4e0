#include <brigade/autograd/ops/batch_norm.h>

#include <brigade/autograd/detail/located.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/batch_norm.h>

namespace brigade {

namespace {

struct BatchNormNode final : autograd::Node {
  // The statistics are kept as they were used, so that a later change of the running ones (another forward, a
  // broadcast) does no harm.
  autograd::SavedTensor x, weight, mean, invstd;
  bool training = true;
  void backward(autograd::BackwardContext& context) override {
    const kernels::BatchNormGrads grads = kernels::batch_norm_backward(
        context.grad(), x.unpack(*this), weight.unpack(*this), mean.unpack(*this), invstd.unpack(*this), training);
    if (context.needs_input_grad(0)) context.set(0, grads.x);
    if (context.needs_input_grad(1)) context.set(1, grads.weight);
    if (context.needs_input_grad(2)) context.set(2, grads.bias);
  }
};

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, bool training, double momentum, double eps, SourceLocation where) {
  const kernels::BatchNorm result = autograd::detail::located(
      where, [&] { return kernels::batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps); });
  if (training && running_mean.defined()) running_mean.bump_version();
  if (training && running_var.defined()) running_var.bump_version();
  if (auto* node = autograd::record<BatchNormNode>({.op = "batch_norm", .where = where}, {x, weight, bias}, result.y)) {
    node->x.save_input(*node, x);
    node->weight.save_input(*node, weight);
    node->mean.save_input(*node, result.mean);
    node->invstd.save_input(*node, result.invstd);
    node->training = training;
  }
  return result.y;
}

}  // namespace brigade
