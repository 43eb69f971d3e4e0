// One node for all kinds, and the gradient of each by operations; prelu and glu are composites.
#include <brigade/autograd/ops/activation.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/elementwise.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/activation.h>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using autograd::detail::located;
using kernels::Activation;
using kernels::ActivationParams;

// grad where |x| > border, 0 elsewhere and for NaN.
Tensor beyond(const Tensor& x, double border, const Tensor& grad) {
  return choose((x < -border) | (x > border), grad, 0.0);
}

// The gradient by differentiable operations. The branch that is not chosen must stay finite, or its derivative would be
// NaN: hence the clamps.
Tensor differentiable(Activation kind, const ActivationParams& with, const Tensor& grad, const Tensor& x) {
  switch (kind) {
    case Activation::Elu: {
      // q x, and p q (exp(r x) - 1) below 0.
      // At 0 the second derivative is that of the right side, as in PyTorch, while the first is
      // that of the left.
      const Tensor below = exp_of(choose(x >= 0.0, 0.0, x) * with.r);
      const Tensor slope = below * (with.p * with.q * with.r);
      return choose(x > 0.0, grad * with.q, grad * slope);
    }
    case Activation::Softplus: {
      const Tensor scaled = x * with.p;
      // At the threshold the second derivative is 0, as in PyTorch.
      const Tensor below = choose(scaled >= with.q, with.q, scaled);
      return choose(scaled > with.q, grad, grad * sigmoid_of(below));
    }
    case Activation::Hardtanh: return choose((x > with.p) & (x < with.q), grad, 0.0);
    case Activation::Hardsigmoid: return choose((x > -3.0) & (x < 3.0), grad * (1.0 / 6), 0.0);
    case Activation::Hardswish: {
      // Outside -3..3 the slope is constant, even where grad is infinite.
      const Tensor slope = x * (1.0 / 3) + 0.5;
      const Tensor inside = choose((x <= -3.0) | (x >= 3.0), 0.0, grad);
      return choose(x <= -3.0, 0.0, choose(x >= 3.0, grad, inside * slope));
    }
    case Activation::Mish: {
      // x t with t = tanh(softplus(x)): t + x (1 - t^2) sigmoid(x)
      const Tensor t = tanh_of(softplus(x, 1, 20, {}));
      const Tensor slope = (1.0 - square_of(t)) * sigmoid_of(x);
      return grad * (t + x * slope);
    }
    case Activation::Softsign: return grad / square_of(abs_of(x) + 1.0);
    case Activation::LogSigmoid: return grad * sigmoid_of(-x);
    case Activation::Softshrink:
    case Activation::Hardshrink: break;
  }
  return beyond(x, with.p, grad);
}

struct ParametricActivationNode final : autograd::Node {
  autograd::SavedTensor x;
  Activation kind = Activation::Elu;
  ActivationParams params;
  void backward(autograd::BackwardContext& context) override {
    const Tensor input = x.unpack(*this);
    context.set(0, context.create_graph()
                       ? differentiable(kind, params, context.grad(), input)
                       : kernels::parametric_activation_backward(context.grad(), input, kind, params));
  }
};

Tensor activate(const char* op, const Tensor& x, Activation kind, const ActivationParams& params,
                SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::parametric_activation(x, kind, params); });
  if (auto* node = autograd::record<ParametricActivationNode>({.op = op, .where = where}, {x}, y)) {
    node->x.save_input(*node, x);
    node->kind = kind;
    node->params = params;
  }
  return y;
}

}  // namespace

Tensor elu(const Tensor& x, double alpha, SourceLocation where) {
  return activate("elu", x, Activation::Elu, {alpha, 1, 1}, where);
}
Tensor selu(const Tensor& x, SourceLocation where) {
  // The fixed point of mean 0 and variance 1.
  return activate("selu", x, Activation::Elu, {1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1},
                  where);
}
Tensor celu(const Tensor& x, double alpha, SourceLocation where) {
  if (alpha == 0) throw ValueError("celu: alpha must not be 0", where);
  return activate("celu", x, Activation::Elu, {alpha, 1, 1 / alpha}, where);
}
Tensor softplus(const Tensor& x, double beta, double threshold, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"softplus">(where, x)) return softplus(in[0], beta, threshold, where);
  }
  return activate("softplus", x, Activation::Softplus, {beta, threshold}, where);
}
Tensor hardtanh(const Tensor& x, double min_val, double max_val, SourceLocation where) {
  if (!(min_val <= max_val)) {
    throw ValueError(where, "hardtanh: expected min_val <= max_val, got {} and {}", min_val, max_val);
  }
  return activate("hardtanh", x, Activation::Hardtanh, {min_val, max_val}, where);
}
Tensor relu6(const Tensor& x, SourceLocation where) {
  return activate("relu6", x, Activation::Hardtanh, {0, 6}, where);
}
Tensor hardsigmoid(const Tensor& x, SourceLocation where) {
  return activate("hardsigmoid", x, Activation::Hardsigmoid, {}, where);
}
Tensor hardswish(const Tensor& x, SourceLocation where) {
  return activate("hardswish", x, Activation::Hardswish, {}, where);
}
Tensor mish(const Tensor& x, SourceLocation where) { return activate("mish", x, Activation::Mish, {}, where); }
Tensor softsign(const Tensor& x, SourceLocation where) {
  return activate("softsign", x, Activation::Softsign, {}, where);
}
Tensor logsigmoid(const Tensor& x, SourceLocation where) {
  return activate("logsigmoid", x, Activation::LogSigmoid, {}, where);
}
Tensor softshrink(const Tensor& x, double lambda, SourceLocation where) {
  if (!(lambda >= 0)) throw ValueError(where, "softshrink: expected lambda >= 0, got {}", lambda);
  return activate("softshrink", x, Activation::Softshrink, {lambda}, where);
}
Tensor hardshrink(const Tensor& x, double lambda, SourceLocation where) {
  return activate("hardshrink", x, Activation::Hardshrink, {lambda}, where);
}

Tensor prelu(const Tensor& x, const Tensor& weight, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"prelu">(where, x, weight)) return prelu(in[0], in[1], where);
  }
  const int64_t channels = x.dim() < 2 ? 1 : x.sizes()[1];
  const int64_t count = weight.numel();
  if (weight.dim() > 1 || (count != 1 && count != channels)) {
    throw ShapeError(where, "prelu: expected a weight of 1 or {} elements for an input {}, got {}", channels, x.sizes(),
                     weight.sizes());
  }
  // [channels, 1, ...], to broadcast over the dimensions behind the channels.
  Shape sizes;
  if (count != 1) {
    sizes = Shape::filled(x.dim() - 1, 1);
    sizes[0] = count;
  }
  const Tensor slope = weight.reshape(sizes, where);
  return brigade::where(gt(x, 0.0, where), x, mul(x, slope, where), where);
}

Tensor glu(const Tensor& x, int64_t dim, SourceLocation where) {
  const int at = autograd::detail::dimension_of("glu", dim, x.dim(), where);
  const int64_t size = x.dim() == 0 ? 1 : x.sizes()[at];
  if (size % 2 != 0) {
    throw ShapeError(where, "glu: expected an even size along dimension {}, got {}", at, x.sizes());
  }
  const Tensor gate = sigmoid(x.narrow(at, size / 2, size / 2, where), where);
  return mul(x.narrow(at, 0, size / 2, where), gate, where);
}

}  // namespace brigade
