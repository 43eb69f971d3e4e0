#include <brigade/autograd/ops/activation.h>

#include <brigade/autograd/detail/located.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/activation.h>

namespace brigade {

namespace {

using autograd::BackwardContext;
using autograd::Node;
using autograd::record;
using autograd::SavedTensor;
using autograd::detail::located;

// Keeps what the derivative is computed from: x for some activations, the result for others.
struct ActivationNode : Node {
  SavedTensor saved;
};

struct ReluNode final : ActivationNode {
  void backward(BackwardContext& context) override {
    context.set(0, kernels::relu_backward(context.grad(), saved.unpack(*this)));
  }
};
struct LeakyReluNode final : ActivationNode {
  double negative_slope = 0;
  void backward(BackwardContext& context) override {
    context.set(0, kernels::leaky_relu_backward(context.grad(), saved.unpack(*this), negative_slope));
  }
};
struct GeluNode final : ActivationNode {
  bool tanh_approximation = false;
  void backward(BackwardContext& context) override {
    context.set(0, kernels::gelu_backward(context.grad(), saved.unpack(*this), tanh_approximation));
  }
};
struct TanhNode final : ActivationNode {
  void backward(BackwardContext& context) override {
    context.set(0, kernels::tanh_backward(context.grad(), saved.unpack(*this)));
  }
};
struct SigmoidNode final : ActivationNode {
  void backward(BackwardContext& context) override {
    context.set(0, kernels::sigmoid_backward(context.grad(), saved.unpack(*this)));
  }
};
struct SiluNode final : ActivationNode {
  void backward(BackwardContext& context) override {
    context.set(0, kernels::silu_backward(context.grad(), saved.unpack(*this)));
  }
};

}  // namespace

Tensor relu(const Tensor& x, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::relu(x); });
  if (auto* node = record<ReluNode>({.op = "relu", .where = where}, {x}, y)) node->saved.save_output(*node, y);
  return y;
}

Tensor leaky_relu(const Tensor& x, double negative_slope, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::leaky_relu(x, negative_slope); });
  if (auto* node = record<LeakyReluNode>({.op = "leaky_relu", .where = where}, {x}, y)) {
    node->saved.save_input(*node, x);
    node->negative_slope = negative_slope;
  }
  return y;
}

Tensor gelu(const Tensor& x, GeluApproximation approximate, SourceLocation where) {
  const bool by_tanh = approximate == GeluApproximation::Tanh;
  Tensor y = located(where, [&] { return kernels::gelu(x, by_tanh); });
  if (auto* node = record<GeluNode>({.op = "gelu", .where = where}, {x}, y)) {
    node->saved.save_input(*node, x);
    node->tanh_approximation = by_tanh;
  }
  return y;
}

Tensor tanh(const Tensor& x, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::tanh(x); });
  if (auto* node = record<TanhNode>({.op = "tanh", .where = where}, {x}, y)) node->saved.save_output(*node, y);
  return y;
}

Tensor sigmoid(const Tensor& x, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::sigmoid(x); });
  if (auto* node = record<SigmoidNode>({.op = "sigmoid", .where = where}, {x}, y)) node->saved.save_output(*node, y);
  return y;
}

Tensor silu(const Tensor& x, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::silu(x); });
  if (auto* node = record<SiluNode>({.op = "silu", .where = where}, {x}, y)) node->saved.save_input(*node, x);
  return y;
}

}  // namespace brigade
