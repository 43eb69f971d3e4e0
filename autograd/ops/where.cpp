#include <brigade/autograd/ops/where.h>

#include <brigade/autograd/detail/located.h>
#include <brigade/autograd/detail/operand_shape.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/where.h>

#include <cmath>

namespace brigade {

namespace {

using autograd::record;
using autograd::detail::located;
using autograd::detail::OperandShape;
using kernels::Choice;

// Inputs: the operands that are tensors, of which there may be one.
struct WhereNode final : autograd::Node {
  autograd::SavedTensor condition;
  OperandShape operands[2];
  bool is_first[2] = {true, false};  // whether the input is what a true condition chooses
  void backward(autograd::BackwardContext& context) override {
    const Tensor chosen = condition.unpack(*this);
    const Tensor& grad = context.grad();
    for (uint32_t i = 0; i < 2; ++i) {
      if (!context.needs_input_grad(i)) continue;
      context.set(i, operands[i].reduce(is_first[i] ? brigade::where(chosen, grad, 0.0, {})
                                                    : brigade::where(chosen, 0.0, grad, {})));
    }
  }
};

Tensor choose(const char* op, const Tensor& condition, const Choice& a, const Choice& b, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::where(condition, a, b); });
  const autograd::OpInfo info{.op = op, .where = where};
  const Tensor* inputs[2];
  bool is_first[2] = {true, false};
  size_t count = 0;
  for (const Choice* side : {&a, &b}) {
    if (!side->tensor.defined()) continue;
    is_first[count] = side == &a;
    inputs[count++] = &side->tensor;
  }
  const Tensor* const outputs[] = {&y};
  if (auto* node = record<WhereNode>(info, autograd::TensorRefs(inputs, count), outputs)) {
    node->condition.save_input(*node, condition);
    for (size_t i = 0; i < count; ++i) {
      node->operands[i].take(*inputs[i], y);
      node->is_first[i] = is_first[i];
    }
  }
  return y;
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, SourceLocation where) {
  return choose("where", condition, a, b, where);
}
Tensor where(const Tensor& condition, const Tensor& a, double b, SourceLocation where) {
  return choose("where", condition, a, b, where);
}
Tensor where(const Tensor& condition, double a, const Tensor& b, SourceLocation where) {
  return choose("where", condition, a, b, where);
}
Tensor where(const Tensor& condition, double a, double b, SourceLocation where) {
  return choose("where", condition, a, b, where);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value, SourceLocation where) {
  const bool is_whole = std::isfinite(value) && value == std::floor(value);
  if (!is_floating_point(x.dtype()) && (!is_whole || (x.dtype() == kBool && value != 0 && value != 1))) {
    throw ValueError("masked_fill: " + std::string(name(x.dtype())) + " cannot hold " + std::to_string(value) +
                         "; convert x with .to(kFloat32) (called at " + to_string(where) + ")",
                     where);
  }
  return choose("masked_fill", mask, value, x, where);
}

}  // namespace brigade
