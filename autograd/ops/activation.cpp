// The nodes of relu, leaky_relu, gelu, tanh, sigmoid and silu, and their derivatives by operations.
#include <brigade/autograd/ops/activation.h>

#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/activation.h>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;

// Saves the tensor that the derivative is computed from: x for some activations, the result for others. Backward is one
// kernel or, if it will be differentiated itself, differentiable operations.
struct ActivationNode : Node {
  SavedTensor saved;

  void backward(BackwardContext& context) final {
    const Tensor kept = saved.unpack(*this);
    context.set(0, context.create_graph() ? differentiable(context.grad(), kept) : fast(context.grad(), kept));
  }
  virtual Tensor fast(const Tensor& grad, const Tensor& kept) const = 0;
  virtual Tensor differentiable(const Tensor& grad, const Tensor& kept) const = 0;
};

struct ReluNode final : ActivationNode {
  Tensor fast(const Tensor& grad, const Tensor& y) const override { return kernels::relu_backward(grad, y); }
  Tensor differentiable(const Tensor& grad, const Tensor& y) const override { return choose(y <= 0.0, 0.0, grad); }
};
struct LeakyReluNode final : ActivationNode {
  double negative_slope = 0;
  Tensor fast(const Tensor& grad, const Tensor& x) const override {
    return kernels::leaky_relu_backward(grad, x, negative_slope);
  }
  Tensor differentiable(const Tensor& grad, const Tensor& x) const override {
    return choose(x > 0.0, grad, grad * negative_slope);
  }
};

struct GeluNode final : ActivationNode {
  bool tanh_approximation = false;
  Tensor fast(const Tensor& grad, const Tensor& x) const override {
    return kernels::gelu_backward(grad, x, tanh_approximation);
  }
  Tensor differentiable(const Tensor& grad, const Tensor& x) const override {
    return grad *
           (tanh_approximation ? autograd::detail::gelu_tanh_derivative(x) : autograd::detail::gelu_derivative(x));
  }
};
struct TanhNode final : ActivationNode {
  Tensor fast(const Tensor& grad, const Tensor& y) const override { return kernels::tanh_backward(grad, y); }
  Tensor differentiable(const Tensor& grad, const Tensor& y) const override { return grad * (1.0 - square_of(y)); }
};
struct SigmoidNode final : ActivationNode {
  Tensor fast(const Tensor& grad, const Tensor& y) const override { return kernels::sigmoid_backward(grad, y); }
  Tensor differentiable(const Tensor& grad, const Tensor& y) const override { return grad * (y * (1.0 - y)); }
};
struct SiluNode final : ActivationNode {
  Tensor fast(const Tensor& grad, const Tensor& x) const override { return kernels::silu_backward(grad, x); }
  // s + x s (1 - s) with s = sigmoid(x)
  Tensor differentiable(const Tensor& grad, const Tensor& x) const override {
    const Tensor s = sigmoid_of(x);
    return grad * (s * (x * (1.0 - s) + 1.0));
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
  Tensor y = located(where, [&] { return of_reals(x, [](const Tensor& r) { return kernels::tanh(r); }); });
  if (auto* node = record<TanhNode>({.op = "tanh", .where = where}, {x}, y)) node->saved.save_output(*node, y);
  return y;
}

Tensor sigmoid(const Tensor& x, SourceLocation where) {
  Tensor y = located(where, [&] { return of_reals(x, [](const Tensor& r) { return kernels::sigmoid(r); }); });
  if (auto* node = record<SigmoidNode>({.op = "sigmoid", .where = where}, {x}, y)) node->saved.save_output(*node, y);
  return y;
}

Tensor silu(const Tensor& x, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::silu(x); });
  if (auto* node = record<SiluNode>({.op = "silu", .where = where}, {x}, y)) node->saved.save_input(*node, x);
  return y;
}

}  // namespace brigade
