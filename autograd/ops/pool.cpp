#include <brigade/autograd/ops/pool.h>

#include <brigade/autograd/detail/located.h>
#include <brigade/autograd/record.h>

namespace brigade {

namespace {

using autograd::BackwardContext;
using autograd::detail::located;

struct MaxPool2dNode final : autograd::Node {
  Tensor indices;
  Shape x_sizes;
  Pool2dParams params;
  void backward(BackwardContext& context) override {
    context.set(0, kernels::max_pool2d_backward(context.grad(), indices, x_sizes, params));
  }
};

struct AvgPool2dNode final : autograd::Node {
  Shape x_sizes;
  Pool2dParams params;
  void backward(BackwardContext& context) override {
    context.set(0, kernels::avg_pool2d_backward(context.grad(), x_sizes, params));
  }
};

}  // namespace

Tensor max_pool2d(const Tensor& x, const Pool2dParams& params, SourceLocation where) {
  const kernels::MaxPool result = located(where, [&] { return kernels::max_pool2d(x, params); });
  if (auto* node = autograd::record<MaxPool2dNode>({.op = "max_pool2d", .where = where}, {x}, result.values)) {
    node->indices = result.indices;
    node->x_sizes = x.sizes();
    node->params = params;
  }
  return result.values;
}

Tensor avg_pool2d(const Tensor& x, const Pool2dParams& params, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::avg_pool2d(x, params); });
  if (auto* node = autograd::record<AvgPool2dNode>({.op = "avg_pool2d", .where = where}, {x}, y)) {
    node->x_sizes = x.sizes();
    node->params = params;
  }
  return y;
}

}  // namespace brigade
