// The node of a scaled loss.
#include <brigade/amp/detail/loss_scale_node.h>

#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::amp {

namespace {

struct LossScaleNode final : autograd::Node {
  Tensor scale;  // a new scale is a new tensor, unless the device keeps it (DeviceScale)
  autograd::ScaleMark mark;

  // With create_graph this records a plain product: a loss made from the gradient later is not
  // scaled yet, and gets a mark of its own when it is.
  void backward(autograd::BackwardContext& context) override { context.set_fitted(0, mul(context.grad(), scale, {})); }
  const autograd::ScaleMark* scale_mark() const noexcept override { return &mark; }
};

}  // namespace

Tensor detail::scaled_loss(const Tensor& loss, const Tensor& scale, const autograd::ScaleMark& mark) {
  const Tensor result = kernels::binary(loss, scale, kernels::BinaryOp::Mul);
  const autograd::OpInfo info{.op = "amp_scale", .where = mark.where};
  if (auto* const node = autograd::record<LossScaleNode>(info, {loss}, result)) {
    node->scale = scale;
    node->mark = mark;
  }
  return result;
}

}  // namespace brigade::amp
