#include <brigade/autograd/ops/conv.h>

#include <brigade/autograd/detail/located.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/reduce.h>

namespace brigade {

namespace {

using autograd::BackwardContext;
using autograd::SavedTensor;

struct Conv2dNode final : autograd::Node {
  SavedTensor x, weight;
  Shape x_sizes, weight_sizes;
  Conv2dParams params;

  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (context.needs_input_grad(1)) {
      const auto destination = context.destination(1);
      const Tensor result = kernels::conv2d_backward_weight(grad, x.unpack(*this), weight_sizes, params,
                                                            destination.out, destination.accumulate);
      if (destination.out.defined()) {
        context.set_written(1);
      } else {
        context.set(1, result);
      }
    }
    if (edges.size() > 2 && context.needs_input_grad(2)) {
      const auto destination = context.destination(2);
      const Tensor result = kernels::sum(
          grad, {.dims = {0, 2, 3}, .keepdim = false, .out = destination.out, .accumulate = destination.accumulate});
      if (destination.out.defined()) {
        context.set_written(2);
      } else {
        context.set(2, result);
      }
    }
    if (context.needs_input_grad(0))
      context.set(0, kernels::conv2d_backward_input(grad, weight.unpack(*this), x_sizes, params));
  }
};

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dParams& params,
              SourceLocation where) {
  Tensor y = autograd::detail::located(where, [&] { return kernels::conv2d(x, weight, bias, params); });
  const Tensor* inputs[] = {&x, &weight, &bias};
  const Tensor* outputs[] = {&y};
  const autograd::TensorRefs used(inputs, bias.defined() ? 3 : 2);
  if (auto* node = autograd::record<Conv2dNode>({.op = "conv2d", .where = where}, used, outputs)) {
    node->x_sizes = x.sizes();
    node->weight_sizes = weight.sizes();
    node->params = params;
    if (weight.requires_grad()) node->x.save_input(*node, x);
    if (x.requires_grad()) node->weight.save_input(*node, weight);
  }
  return y;
}

}  // namespace brigade
