// The nodes of pow, atan2, remainder and fmod, of two tensors or of a tensor and a number.
#include <brigade/autograd/ops/elementwise.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <cmath>
#include <limits>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;
using kernels::BinaryFunction;

struct PairNode : autograd::Node {
  SavedTensor left, right;

  void take(const Tensor& first, const Tensor& second) {
    left.save_input(*this, first);
    right.save_input(*this, second);
  }
};

// An operand, possibly an integer tensor, in the dtype of a gradient.
Tensor as_number(const Tensor& x, const Tensor& grad) {
  return is_floating_point(x.dtype()) ? widened(x) : kernels::cast(x, grad.dtype());
}

// a^b: b a^(b-1) and a^b log a
struct PowNode final : PairNode {
  SavedTensor y;
  void backward(BackwardContext& context) override {
    const Tensor grad = widened(context.grad());
    const Tensor base = as_number(left.unpack(*this), grad);
    const Tensor exponent = as_number(right.unpack(*this), grad);
    if (context.needs_input_grad(0)) {
      const Tensor slope = grad * (exponent * pow(base, exponent - 1.0, {}));
      context.set_fitted(0, choose(exponent == 0.0, 0.0, slope));
    }
    if (context.needs_input_grad(1)) {
      // The logarithm of a base of 0 matters for negative exponents only; elsewhere use the logarithm of 1, so that a
      // second derivative has no NaN.
      const Tensor is_flat = (base == 0.0) & (exponent >= 0.0);
      const Tensor slope = grad * (widened(y.unpack(*this)) * log_of(choose(is_flat, 1.0, base)));
      context.set_fitted(1, choose(is_flat, 0.0, slope));
    }
  }
};

// x^number: number x^(number-1)
struct PowNumberNode final : autograd::Node {
  SavedTensor base;
  double exponent = 0;
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (exponent == 0) {
      context.set(0, zeros_like(grad));
      return;
    }
    const Tensor slope = pow(widened(base.unpack(*this)), exponent - 1, {}) * exponent;
    context.set(0, in_dtype(widened(grad) * slope, grad.dtype()));
  }
};

// number^x: y log number
struct NumberPowNode final : autograd::Node {
  SavedTensor x, y;
  double base = 0;
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    const Tensor slope = widened(grad) * (widened(y.unpack(*this)) * std::log(base));
    context.set(0, in_dtype(base == 0 ? choose(x.unpack(*this) >= 0.0, 0.0, slope) : slope, grad.dtype()));
  }
};

struct Atan2Node final : PairNode {
  void backward(BackwardContext& context) override {
    const Tensor grad = widened(context.grad());
    // x / (x^2 + y^2), with both divided by the larger of the two (a constant) so that the squares stay in range.
    const Tensor size = larger(left.unpack(*this), right.unpack(*this), grad.dtype());
    const Tensor y = as_number(left.unpack(*this), grad) / size;
    const Tensor x = as_number(right.unpack(*this), grad) / size;
    const Tensor squares = square_of(y) + square_of(x);
    const Tensor divisor = choose(squares == 0.0, 1.0, squares);
    const auto slope = [&](const Tensor& of) { return grad * (of / divisor) / size; };
    if (context.needs_input_grad(0)) context.set_fitted(0, slope(x));
    if (context.needs_input_grad(1)) context.set_fitted(1, -slope(y));
  }

 private:
  // The larger of the absolute values; 1 where both are 0, and always finite. Without history.
  static Tensor larger(const Tensor& y, const Tensor& x, DType dtype) {
    using kernels::BinaryOp;
    const auto size = [&](const Tensor& t) { return kernels::unary(kernels::cast(t, dtype), kernels::UnaryOp::Abs); };
    const Tensor found = kernels::binary(size(y), size(x), BinaryOp::Maximum);
    const Tensor is_zero = kernels::cast(kernels::compare_scalar(found, 0, kernels::CompareOp::Equal), dtype);
    const double most = dtype == kFloat64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
    return kernels::binary_scalar(kernels::binary(found, is_zero, BinaryOp::Add), most, BinaryOp::Minimum, false);
  }
};

// a - b q(a / b), where q rounds and has no derivative.
struct RemainderNode final : PairNode {
  bool rounds_down = true;
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (context.needs_input_grad(0)) context.set_fitted(0, grad);
    if (!context.needs_input_grad(1)) return;
    const Tensor quotient = widened(left.unpack(*this)) / widened(right.unpack(*this));
    const Tensor whole = rounds_down ? floor(quotient, {}) : trunc(quotient, {});
    context.set_fitted(1, -(widened(grad) * whole.detach({})));
  }
};

struct RemainderNumberNode final : autograd::Node {
  void backward(BackwardContext& context) override { context.set(0, context.grad()); }
};

Tensor remainder_of(const autograd::OpInfo& info, const Tensor& a, const Tensor& b, BinaryFunction f) {
  Tensor y = located(info.where, [&] { return kernels::binary_function(a, b, f); });
  if (auto* node = record<RemainderNode>(info, {a, b}, y)) {
    if (b.requires_grad()) node->take(a, b);
    node->rounds_down = f == BinaryFunction::Remainder;
  }
  return y;
}

Tensor remainder_of(const autograd::OpInfo& info, const Tensor& a, Scalar b, BinaryFunction f) {
  Tensor y = located(info.where, [&] { return kernels::binary_function_scalar(a, b, f, false); });
  record<RemainderNumberNode>(info, {a}, y);
  return y;
}

// Handles the exponents that have a dedicated function.
Tensor power(const Tensor& base, Scalar number) {
  using kernels::unary;
  using kernels::UnaryOp;
  const double exponent = number.to<double>();
  if (is_floating_point(base.dtype())) {
    if (exponent == 1) return kernels::clone(base);
    if (exponent == 2) return unary(base, UnaryOp::Square);
    if (exponent == 3) return kernels::binary(unary(base, UnaryOp::Square), base, kernels::BinaryOp::Mul);
    if (exponent == 0.5) return unary(base, UnaryOp::Sqrt);
    if (exponent == -0.5) return kernels::function(base, kernels::Function::Rsqrt);
    if (exponent == -1) return unary(base, UnaryOp::Reciprocal);
  } else if (number.is_floating_point() && base.dtype() != kBool) {
    return power(kernels::cast(base, kernels::result_type(base, number)), number);
  } else if (exponent < 0 && base.dtype() != kBool) {
    throw ValueError("pow: integers have no integer power below 0 (got {}); a floating exponent, {}.0, gives float32",
                     number, number);
  }
  return kernels::binary_function_scalar(base, number, BinaryFunction::Pow, false);
}

}  // namespace

Tensor pow(const Tensor& base, const Tensor& exponent, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"pow">(where, base, exponent)) return pow(in[0], in[1], where);
  }
  Tensor y = located(where, [&] { return kernels::binary_function(base, exponent, BinaryFunction::Pow); });
  if (auto* node = record<PowNode>({.op = "pow", .where = where}, {base, exponent}, y)) {
    node->take(base, exponent);
    node->y.save_output(*node, y);
  }
  return y;
}

Tensor pow(const Tensor& base, Scalar exponent, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"pow">(where, base)) return pow(in[0], exponent, where);
  }
  Tensor y = located(where, [&] { return power(base, exponent); });
  if (auto* node = record<PowNumberNode>({.op = "pow", .where = where}, {base}, y)) {
    node->base.save_input(*node, base);
    node->exponent = exponent.to<double>();
  }
  return y;
}

Tensor pow(Scalar base, const Tensor& exponent, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"pow">(where, exponent)) return pow(base, in[0], where);
  }
  Tensor y = located(where, [&] { return kernels::binary_function_scalar(exponent, base, BinaryFunction::Pow, true); });
  if (auto* node = record<NumberPowNode>({.op = "pow", .where = where}, {exponent}, y)) {
    node->x.save_input(*node, exponent);
    node->y.save_output(*node, y);
    node->base = base.to<double>();
  }
  return y;
}

Tensor atan2(const Tensor& y, const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"atan2">(where, y, x)) return atan2(in[0], in[1], where);
  }
  Tensor angle = located(where, [&] { return kernels::binary_function(y, x, BinaryFunction::Atan2); });
  if (auto* node = record<Atan2Node>({.op = "atan2", .where = where}, {y, x}, angle)) node->take(y, x);
  return angle;
}

Tensor remainder(const Tensor& a, const Tensor& b, SourceLocation where) {
  return remainder_of({.op = "remainder", .where = where}, a, b, BinaryFunction::Remainder);
}
Tensor remainder(const Tensor& a, Scalar b, SourceLocation where) {
  return remainder_of({.op = "remainder", .where = where}, a, b, BinaryFunction::Remainder);
}
Tensor fmod(const Tensor& a, const Tensor& b, SourceLocation where) {
  return remainder_of({.op = "fmod", .where = where}, a, b, BinaryFunction::Fmod);
}
Tensor fmod(const Tensor& a, Scalar b, SourceLocation where) {
  return remainder_of({.op = "fmod", .where = where}, a, b, BinaryFunction::Fmod);
}

}  // namespace brigade
