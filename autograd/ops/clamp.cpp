// The nodes of clamp, between numbers and between tensors.
#include <brigade/autograd/ops/elementwise.h>

#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using autograd::detail::located;
using kernels::BinaryOp;

struct ClampNode final : autograd::Node {
  SavedTensor x;
  kernels::Borders borders;
  void backward(BackwardContext& context) override {
    const Tensor input = x.unpack(*this);
    if (!context.create_graph()) {
      context.set(0, kernels::clamp_backward(context.grad(), input, borders));
      return;
    }
    Tensor grad = context.grad();
    if (borders.lower) grad = choose(input > borders.lower->to<double>(), grad, 0.0);
    if (borders.upper) grad = choose(input < borders.upper->to<double>(), grad, 0.0);
    context.set(0, grad);
  }
};

struct ClampTensorsNode final : autograd::Node {
  SavedTensor x, lower, upper;
  void backward(BackwardContext& context) override {
    const Tensor input = x.unpack(*this);
    const Tensor low = lower.unpack(*this);
    const Tensor high = upper.unpack(*this);
    const Tensor& grad = context.grad();
    const Tensor is_open = low < high;
    const auto halved = [&](const Tensor& border) { return choose((input == border) & is_open, grad * 0.5, grad); };
    const auto set = [&](uint32_t i, const Tensor& to, const Tensor& gets) {
      context.set_fitted(i, choose(gets, to, 0.0));
    };
    if (context.needs_input_grad(0)) {
      const Tensor on_border = (input == low) | (input == high);
      const Tensor share = choose(on_border & is_open, grad * 0.5, grad);
      const Tensor is_out = (input < low) | (input > high);
      set(0, share, !is_out);
    }
    if (context.needs_input_grad(1)) {
      const Tensor on_it = (input == low) & is_open;
      const Tensor below = (input < low) & (low <= high);
      set(1, halved(low), on_it | below);
    }
    if (context.needs_input_grad(2)) {
      const Tensor on_it = (input == high) & is_open;
      const Tensor above = (input > high) & (low <= high);
      set(2, halved(high), on_it | above | (low > high));
    }
  }
};

[[noreturn]] void throw_no_border(SourceLocation where) {
  throw ValueError("clamp: expected a min, a max or both, got neither", where);
}

Tensor clamp_between(const autograd::OpInfo& info, const Tensor& x, const kernels::Borders& borders) {
  Tensor y = located(info.where, [&] { return kernels::clamp(x, borders); });
  if (auto* node = record<ClampNode>(info, {x}, y)) {
    node->x.save_input(*node, x);
    node->borders = borders;
  }
  return y;
}

}  // namespace

Tensor clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max, SourceLocation where) {
  if (!min && !max) throw_no_border(where);
  return clamp_between({.op = "clamp", .where = where}, x, {min, max});
}
Tensor clamp_min(const Tensor& x, Scalar min, SourceLocation where) {
  return clamp_between({.op = "clamp_min", .where = where}, x, {min, std::nullopt});
}
Tensor clamp_max(const Tensor& x, Scalar max, SourceLocation where) {
  return clamp_between({.op = "clamp_max", .where = where}, x, {std::nullopt, max});
}

Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max, SourceLocation where) {
  if (!min.defined() && !max.defined()) throw_no_border(where);
  if (!max.defined()) return maximum(x, min, where);
  if (!min.defined()) return minimum(x, max, where);
  Tensor y = located(where, [&] {
    const DType dtype = kernels::result_type({x, min, max});  // of all three: pairs may promote otherwise
    const auto same = [dtype](const Tensor& t) { return kernels::cast(t, dtype); };
    return kernels::binary(kernels::binary(same(x), same(min), BinaryOp::Maximum), same(max), BinaryOp::Minimum);
  });
  const Tensor* const inputs[] = {&x, &min, &max};
  const Tensor* const outputs[] = {&y};
  if (auto* node = record<ClampTensorsNode>({.op = "clamp", .where = where}, inputs, outputs)) {
    node->x.save_input(*node, x);
    node->lower.save_input(*node, min);
    node->upper.save_input(*node, max);
  }
  return y;
}
Tensor clamp_min(const Tensor& x, const Tensor& min, SourceLocation where) { return maximum(x, min, where); }
Tensor clamp_max(const Tensor& x, const Tensor& max, SourceLocation where) { return minimum(x, max, where); }

}  // namespace brigade
