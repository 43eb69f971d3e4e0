// The node of where and masked_fill: each side gets the gradient where it was chosen.
#include <brigade/autograd/ops/elementwise.h>

#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <cmath>

namespace brigade {
namespace {

using autograd::record;
using autograd::detail::located;
using kernels::Choice;

// Inputs: the operands that are tensors; there may be only one.
struct WhereNode final : autograd::Node {
  autograd::SavedTensor condition;
  bool is_first[2] = {true, false};  // whether a true condition selects the input
  void backward(autograd::BackwardContext& context) override {
    const Tensor chosen = condition.unpack(*this);
    const Tensor& grad = context.grad();
    for (uint32_t i = 0; i < 2; ++i) {
      if (!context.needs_input_grad(i)) continue;
      context.set_fitted(i,
                         is_first[i] ? brigade::where(chosen, grad, 0.0, {}) : brigade::where(chosen, 0.0, grad, {}));
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
    std::copy_n(is_first, count, node->is_first);
  }
  return y;
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, SourceLocation where) {
  return choose("where", condition, a, b, where);
}
Tensor where(const Tensor& condition, const Tensor& a, Scalar b, SourceLocation where) {
  return choose("where", condition, a, b, where);
}
Tensor where(const Tensor& condition, Scalar a, const Tensor& b, SourceLocation where) {
  return choose("where", condition, a, b, where);
}
Tensor where(const Tensor& condition, Scalar a, Scalar b, SourceLocation where) {
  return choose("where", condition, a, b, where);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value, SourceLocation where) {
  if (is_floating_point(x.dtype())) return choose("masked_fill", mask, value, x, where);
  const double number = value.to<double>();
  const bool is_whole = std::isfinite(number) && number == std::floor(number);
  const bool is_truth = x.dtype() == kBool;
  if (!is_whole || (is_truth && number != 0 && number != 1)) {
    throw ValueError(where, "masked_fill: {} cannot hold {}; convert x with .to(kFloat32)", name(x.dtype()), value);
  }
  return choose("masked_fill", mask, is_truth ? Scalar(value.to<bool>()) : Scalar(value.to<int64_t>()), x, where);
}

}  // namespace brigade
