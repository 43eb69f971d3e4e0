// The in-place methods of Tensor. On a result of the graph the tensor becomes the result of a new node whose first
// input is its own past.
#include <brigade/autograd/detail/located.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>

namespace brigade {

namespace {

using autograd::BackwardContext;
using autograd::check_inplace;
using autograd::Node;
using autograd::record_inplace;
using autograd::SavedTensor;
using autograd::detail::located;

// The gradient of what was read, in its own shape and dtype, on its own device.
Tensor fit(const Tensor& grad, const Shape& sizes, TensorOptions options) {
  return sum_to(grad, sizes, {}).to(options.dtype, {}).to(options.device, {});
}

struct CopyNode final : Node {
  Shape sizes;
  TensorOptions options;
  void backward(BackwardContext& context) override {
    if (context.needs_input_grad(0)) context.set(0, mul(context.grad(), 0.0, {}));  // the past was overwritten
    if (context.needs_input_grad(1)) context.set(1, fit(context.grad(), sizes, options));
  }
};

struct FillNode final : Node {
  void backward(BackwardContext& context) override { context.set(0, mul(context.grad(), 0.0, {})); }
};

struct AddInplaceNode final : Node {
  double alpha = 1;
  Shape sizes;
  TensorOptions options;
  void backward(BackwardContext& context) override {
    if (context.needs_input_grad(0)) context.set(0, context.grad());
    if (context.needs_input_grad(1))
      context.set(1, fit(alpha == 1 ? context.grad() : mul(context.grad(), alpha, {}), sizes, options));
  }
};

struct MulInplaceNode final : Node {
  SavedTensor past, other;
  Shape sizes;
  TensorOptions options;
  void backward(BackwardContext& context) override {
    if (context.needs_input_grad(0)) context.set(0, mul(context.grad(), other.unpack(*this), {}));
    if (context.needs_input_grad(1)) context.set(1, fit(mul(context.grad(), past.unpack(*this), {}), sizes, options));
  }
};

struct ScaleInplaceNode final : Node {
  double factor = 1;
  void backward(BackwardContext& context) override { context.set(0, mul(context.grad(), factor, {})); }
};

}  // namespace

const Tensor& Tensor::copy_(const Tensor& source, SourceLocation where) const {
  check_inplace(*this, source.requires_grad(), where);
  located(where, [&] { kernels::copy(*this, source); });
  if (auto* node = record_inplace<CopyNode>({.op = "copy_", .where = where}, {*this, source}, *this)) {
    node->sizes = source.sizes();
    node->options = source.options();
  }
  return *this;
}

const Tensor& Tensor::fill_(double value, SourceLocation where) const {
  check_inplace(*this, false, where);
  kernels::fill(*this, value);
  record_inplace<FillNode>({.op = "fill_", .where = where}, {*this}, *this);
  return *this;
}

const Tensor& Tensor::zero_(SourceLocation where) const { return fill_(0, where); }

const Tensor& Tensor::add_(const Tensor& other, double alpha, SourceLocation where) const {
  check_inplace(*this, other.requires_grad(), where);
  located(where, [&] { kernels::add_inplace(*this, other, alpha); });
  if (auto* node = record_inplace<AddInplaceNode>({.op = "add_", .where = where}, {*this, other}, *this)) {
    node->alpha = alpha;
    node->sizes = other.sizes();
    node->options = other.options();
  }
  return *this;
}

const Tensor& Tensor::mul_(const Tensor& other, SourceLocation where) const {
  check_inplace(*this, other.requires_grad(), where);
  // The derivative with respect to the factor needs the value that is about to be overwritten.
  const bool keep_past = autograd::GradMode::is_enabled() && other.requires_grad();
  const Tensor past = keep_past ? kernels::clone(*this) : Tensor();
  located(where, [&] { kernels::mul_inplace(*this, other); });
  if (auto* node = record_inplace<MulInplaceNode>({.op = "mul_", .where = where}, {*this, other}, *this)) {
    node->past.save_input(*node, past);
    node->other.save_input(*node, other);
    node->sizes = other.sizes();
    node->options = other.options();
  }
  return *this;
}

const Tensor& Tensor::mul_(double factor, SourceLocation where) const {
  check_inplace(*this, false, where);
  kernels::scale_inplace(*this, factor);
  if (auto* node = record_inplace<ScaleInplaceNode>({.op = "mul_", .where = where}, {*this}, *this))
    node->factor = factor;
  return *this;
}

}  // namespace brigade
