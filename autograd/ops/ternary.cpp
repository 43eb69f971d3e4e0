// The nodes of addcmul, addcdiv and lerp, each of which keeps only what its backward reads.
#include <brigade/autograd/ops/elementwise.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;
using kernels::TernaryOp;

// Saves those of the three tensors that its backward reads; `number` is the factor of the product or quotient.
struct TernaryNode : autograd::Node {
  SavedTensor saved[3];
  double number = 1;
};

// x + number a b
struct AddcmulNode final : TernaryNode {
  // Whether the backward of some input reads input i.
  static bool takes(size_t i, const Tensor* const* inputs) { return i > 0 && inputs[3 - i]->requires_grad(); }
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (context.needs_input_grad(0)) context.set_fitted(0, grad);
    for (const uint32_t i : {1U, 2U}) {
      if (context.needs_input_grad(i))
        context.set_fitted(i, widened(grad) * widened(saved[3 - i].unpack(*this)) * number);
    }
  }
};

// x + number a / b: number / b and -number (a / b) / b
struct AddcdivNode final : TernaryNode {
  static bool takes(size_t i, const Tensor* const* inputs) {
    return i > 0 && (inputs[2]->requires_grad() || (i == 2 && inputs[1]->requires_grad()));
  }
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (context.needs_input_grad(0)) context.set_fitted(0, grad);
    if (!context.needs_input_grad(1) && !context.needs_input_grad(2)) return;
    const Tensor wide = widened(grad);
    const Tensor b = widened(saved[2].unpack(*this));
    if (context.needs_input_grad(1)) context.set_fitted(1, wide / b * number);
    if (context.needs_input_grad(2)) {
      const Tensor slope = widened(saved[1].unpack(*this)) / b / b * number;
      context.set_fitted(2, -(wide * slope));
    }
  }
};

// start + weight (end - start)
struct LerpNode final : TernaryNode {
  static bool takes(size_t i, const Tensor* const* inputs) { return i == 2 || inputs[2]->requires_grad(); }
  void backward(BackwardContext& context) override {
    const Tensor grad = widened(context.grad());
    const Tensor weight = widened(saved[2].unpack(*this));
    if (context.needs_input_grad(0)) context.set_fitted(0, grad * (1.0 - weight));
    if (context.needs_input_grad(1)) context.set_fitted(1, grad * weight);
    if (context.needs_input_grad(2)) {
      const Tensor way = widened(saved[1].unpack(*this)) - widened(saved[0].unpack(*this));
      context.set_fitted(2, grad * way);
    }
  }
};

struct LerpNumberNode final : autograd::Node {
  double weight = 0;
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (context.needs_input_grad(0)) context.set_fitted(0, grad * (1 - weight));
    if (context.needs_input_grad(1)) context.set_fitted(1, grad * weight);
  }
};

template <class N>
Tensor apply(const char* op, const Tensor& x, const Tensor& a, const Tensor& b, TernaryOp kernel, double number,
             SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::ternary(x, a, b, kernel, number); });
  const Tensor* const inputs[] = {&x, &a, &b};
  const Tensor* const outputs[] = {&y};
  if (auto* node = record<N>({.op = op, .where = where}, inputs, outputs)) {
    for (size_t i = 0; i < 3; ++i) {
      if (N::takes(i, inputs)) node->saved[i].save_input(*node, *inputs[i]);
    }
    node->number = number;
  }
  return y;
}

}  // namespace

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"addcmul">(where, x, a, b))
      return addcmul(in[0], in[1], in[2], value, where);
  }
  return apply<AddcmulNode>("addcmul", x, a, b, TernaryOp::Addcmul, value, where);
}
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, double value, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"addcdiv">(where, x, a, b))
      return addcdiv(in[0], in[1], in[2], value, where);
  }
  return apply<AddcdivNode>("addcdiv", x, a, b, TernaryOp::Addcdiv, value, where);
}
Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight, SourceLocation where) {
  return apply<LerpNode>("lerp", start, end, weight, TernaryOp::Lerp, 1, where);
}
Tensor lerp(const Tensor& start, const Tensor& end, double weight, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::lerp(start, end, weight); });
  if (auto* node = record<LerpNumberNode>({.op = "lerp", .where = where}, {start, end}, y)) node->weight = weight;
  return y;
}

}  // namespace brigade
