// The in-place methods of Tensor. A tensor with a history becomes the result of a new node whose first input is its
// previous value.
#include <brigade/autograd/ops/arithmetic.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/activation.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd;
using autograd::detail::located;

// Copies an operand that shares memory with `self`, so that it is read, and saved for backward, with its current
// values.
Tensor as_it_is(const Tensor& operand, const Tensor& self) {
  if (operand.storage() != self.storage()) return operand;
  return autograd::with_history_of(operand, kernels::clone(operand));
}

void check_sum(const Tensor& self, const Tensor& other, Scalar alpha) {
  const DType type = kernels::result_type({self, other});
  kernels::check_result_type("add_", type, self);
  if (type == kBool && alpha.to<double>() != 1) {
    throw DTypeError("add_: bool tensors are added with alpha 1 only, got {}; convert with .to(kInt64) first", alpha);
  }
  if (!is_floating_point(type) && alpha.is_floating_point()) {
    throw ValueError("For integral input tensors, argument alpha must not be a floating point number: got {} for {}",
                     alpha, describe(self));
  }
}

// The overwritten value gets a constant gradient of zeros.
struct CopyNode final : Node {
  void backward(BackwardContext& context) override {
    if (context.needs_input_grad(0)) context.set(0, zeros_like(context.grad()));
    if (context.needs_input_grad(1)) context.set_fitted(1, context.grad());
  }
};

struct FillNode final : Node {
  void backward(BackwardContext& context) override { context.set(0, zeros_like(context.grad())); }
};

struct AddInplaceNode final : Node {
  double alpha = 1;
  void backward(BackwardContext& context) override {
    if (context.needs_input_grad(0)) context.set(0, context.grad());
    if (context.needs_input_grad(1)) context.set_fitted(1, alpha == 1 ? context.grad() : context.grad() * alpha);
  }
};

struct MulInplaceNode final : Node {
  SavedTensor past, other;
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (context.needs_input_grad(0)) context.set(0, grad * other.unpack(*this));
    if (context.needs_input_grad(1)) context.set_fitted(1, grad * past.unpack(*this));
  }
};

struct ScaleInplaceNode final : Node {
  double factor = 1;
  void backward(BackwardContext& context) override { context.set(0, context.grad() * factor); }
};

// `op`: the operation that the program called, under which the tape, the graph and the write log list this write.
const Tensor& copy_as(const char* op, const Tensor& self, const Tensor& source, SourceLocation where) {
  check_inplace(self, source.requires_grad(), where);
  const Tensor operand = as_it_is(source, self);
  located(where, [&] { kernels::copy(self, operand); });
  autograd::note_copy(source);
  record_inplace<CopyNode>({.op = op, .where = where}, {self, operand}, self);
  return self;
}

const Tensor& fill_all(const char* op, const Tensor& self, Scalar value, SourceLocation where) {
  check_inplace(self, false, where, autograd::Repeats::AreAlike);
  kernels::fill(self, value);
  record_inplace<FillNode>({.op = op, .where = where}, {self}, self);
  return self;
}

// Writes the result of a differentiable operation on x into x. The operation may keep its operand,
// so it works on a copy where that is possible.
template <class F>
const Tensor& write_back(const char* op, const Tensor& x, bool other_requires_grad, SourceLocation where,
                         F&& operation) {
  check_inplace(x, other_requires_grad, where);
  const autograd::AutocastPause in_dtype_of_x;  // as in PyTorch, nothing in place is cast
  const bool may_keep = autograd::GradMode::is_enabled() && (x.requires_grad() || other_requires_grad);
  const Tensor result = operation(may_keep ? autograd::with_history_of(x, kernels::clone(x)) : x);
  located(where, [&] { kernels::check_result_type(op, result.dtype(), x); });
  if (result.sizes() != x.sizes()) {
    throw ShapeError(where, "output with shape {} doesn't match the broadcast shape {}; write out of place", x.sizes(),
                     result.sizes());
  }
  return copy_as(op, x, result, where);
}

}  // namespace

const Tensor& Tensor::copy_(const Tensor& source, SourceLocation where) const {
  return copy_as("copy_", *this, source, where);
}

const Tensor& Tensor::fill_(Scalar value, SourceLocation where) const { return fill_all("fill_", *this, value, where); }
const Tensor& Tensor::zero_(SourceLocation where) const { return fill_all("zero_", *this, 0, where); }

namespace {

const Tensor& add_as(const char* op, const Tensor& x, const Tensor& other, Scalar alpha, SourceLocation where) {
  check_inplace(x, other.requires_grad(), where);
  located(where, [&] { check_sum(x, other, alpha); });
  const DType common = kernels::result_type({x, other});
  if (common != x.dtype()) {  // computed in the wider dtype, and rounded once
    return write_back(op, x, other.requires_grad(), where, [&](const Tensor& value) {
      const Tensor operand = as_it_is(other, x).to(common, where);
      return add(value, alpha.to<double>() == 1 ? operand : mul(operand, alpha, where), where);
    });
  }
  const Tensor operand = as_it_is(other, x);
  located(where, [&] { kernels::add_inplace(x, operand, alpha); });
  if (auto* node = record_inplace<AddInplaceNode>({.op = op, .where = where}, {x, operand}, x))
    node->alpha = alpha.to<double>();
  return x;
}

}  // namespace

const Tensor& Tensor::add_(const Tensor& other, Scalar alpha, SourceLocation where) const {
  return add_as("add_", *this, other, alpha, where);
}

const Tensor& Tensor::mul_(const Tensor& other, SourceLocation where) const {
  check_inplace(*this, other.requires_grad(), where);
  const DType common = kernels::result_type({*this, other});
  located(where, [&] { kernels::check_result_type("mul_", common, *this); });
  if (common != dtype()) {
    return write_back("mul_", *this, other.requires_grad(), where,
                      [&](const Tensor& value) { return mul(value, as_it_is(other, *this), where); });
  }
  // The derivative with respect to the factor needs the value that is about to be overwritten.
  const bool keep_past = autograd::GradMode::is_enabled() && other.requires_grad();
  const Tensor past = keep_past ? autograd::with_history_of(*this, kernels::clone(*this)) : Tensor();
  const Tensor operand = as_it_is(other, *this);
  located(where, [&] { kernels::mul_inplace(*this, operand); });
  if (auto* node = record_inplace<MulInplaceNode>({.op = "mul_", .where = where}, {*this, operand}, *this)) {
    node->past.save_input(*node, past);
    node->other.save_input(*node, operand);
  }
  return *this;
}

const Tensor& Tensor::mul_(Scalar factor, SourceLocation where) const {
  check_inplace(*this, false, where);
  located(where, [&] { kernels::check_result_type("mul_", kernels::result_type(*this, factor), *this); });
  kernels::scale_inplace(*this, factor);
  if (auto* node = record_inplace<ScaleInplaceNode>({.op = "mul_", .where = where}, {*this}, *this))
    node->factor = factor.to<double>();
  return *this;
}

const Tensor& sub_(const Tensor& x, const Tensor& other, Scalar alpha, SourceLocation where) {
  located(where, [&] { kernels::check_difference(x.dtype(), other.dtype()); });
  return add_as("sub_", x, other, -alpha, where);
}
const Tensor& div_(const Tensor& x, const Tensor& other, SourceLocation where) {
  const Tensor operand = as_it_is(other, x);
  return write_back("div_", x, other.requires_grad(), where,
                    [&](const Tensor& value) { return div(value, operand, where); });
}
const Tensor& div_(const Tensor& x, Scalar number, SourceLocation where) {
  return write_back("div_", x, false, where, [&](const Tensor& value) { return div(value, number, where); });
}
const Tensor& Tensor::add_(Scalar number, SourceLocation where) const {
  return write_back("add_", *this, false, where, [&](const Tensor& value) { return add(value, number, where); });
}
const Tensor& Tensor::sub_(Scalar number, SourceLocation where) const {
  return write_back("sub_", *this, false, where, [&](const Tensor& value) { return sub(value, number, where); });
}
const Tensor& Tensor::sub_(const Tensor& other, Scalar alpha, SourceLocation where) const {
  return brigade::sub_(*this, other, alpha, where);
}
const Tensor& Tensor::div_(const Tensor& other, SourceLocation where) const {
  return brigade::div_(*this, other, where);
}
const Tensor& Tensor::div_(Scalar number, SourceLocation where) const { return brigade::div_(*this, number, where); }

const Tensor& neg_(const Tensor& x, SourceLocation where) {
  return write_back("neg_", x, false, where, [&](const Tensor& value) { return neg(value, where); });
}
const Tensor& exp_(const Tensor& x, SourceLocation where) {
  return write_back("exp_", x, false, where, [&](const Tensor& value) { return exp(value, where); });
}
const Tensor& sqrt_(const Tensor& x, SourceLocation where) {
  return write_back("sqrt_", x, false, where, [&](const Tensor& value) { return sqrt(value, where); });
}
const Tensor& relu_(const Tensor& x, SourceLocation where) {
  return write_back("relu_", x, false, where, [&](const Tensor& value) { return relu(value, where); });
}
const Tensor& leaky_relu_(const Tensor& x, double negative_slope, SourceLocation where) {
  return write_back("leaky_relu_", x, false, where,
                    [&](const Tensor& value) { return leaky_relu(value, negative_slope, where); });
}
const Tensor& sigmoid_(const Tensor& x, SourceLocation where) {
  return write_back("sigmoid_", x, false, where, [&](const Tensor& value) { return sigmoid(value, where); });
}
const Tensor& tanh_(const Tensor& x, SourceLocation where) {
  return write_back("tanh_", x, false, where, [&](const Tensor& value) { return tanh(value, where); });
}

}  // namespace brigade
