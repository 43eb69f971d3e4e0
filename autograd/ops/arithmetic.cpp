// The nodes of arithmetic; gradients are summed back to the shape that was broadcast.
#include <brigade/autograd/ops/arithmetic.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/findings.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/gradient_scale.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;
using kernels::BinaryOp;
using kernels::CompareOp;
using kernels::UnaryOp;

struct AddNode final : Node {
  double sign = 1;  // -1 for a difference
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (context.needs_input_grad(0)) context.set_fitted(0, grad);
    if (context.needs_input_grad(1)) context.set_fitted(1, sign < 0 ? -grad : grad);
  }
};

struct MulNode final : Node {
  SavedTensor left, right;
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (context.needs_input_grad(0)) context.set_fitted(0, grad * right.unpack(*this));
    if (context.needs_input_grad(1)) context.set_fitted(1, grad * left.unpack(*this));
  }
};

struct DivNode final : Node {
  SavedTensor left, right;
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    const Tensor b = right.unpack(*this);
    if (context.needs_input_grad(0)) context.set_fitted(0, grad / b);
    // -g (a / b) / b: the products g a and b b could overflow where the gradient does not.
    if (context.needs_input_grad(1))
      context.set_fitted(1, -(widened(grad) * slope(widened(left.unpack(*this)), widened(b))));
  }

 private:
  static Tensor slope(const Tensor& a, const Tensor& b) { return a / b / b; }
};

// x / number
struct DivNumberNode final : Node {
  double divisor = 1;
  void backward(BackwardContext& context) override { context.set(0, context.grad() / divisor); }
};

// number / x
struct NumberDivNode final : Node {
  SavedTensor y;
  double numerator = 1;
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (numerator == 0) {
      context.set(0, grad * 0.0);
      return;
    }
    // d(c / x) = -c / x^2 = -y (y / c)
    const Tensor quotient = widened(y.unpack(*this));
    const Tensor slope = quotient * (quotient / numerator);
    context.set(0, in_dtype(-(widened(grad) * slope), grad.dtype()));
  }
};

struct LargerOrSmallerNode final : Node {
  SavedTensor left, right;
  bool is_maximum = true;
  void backward(BackwardContext& context) override {
    const Tensor x = left.unpack(*this);
    const Tensor y = right.unpack(*this);
    const Tensor& grad = context.grad();
    // Ties get half of the gradient each, the loser gets nothing. A NaN never loses.
    const Tensor shared = choose(x == y, grad * 0.5, grad);
    const auto unless = [&](const Tensor& lost) { return choose(lost, 0.0, shared); };
    if (context.needs_input_grad(0)) context.set_fitted(0, unless(is_maximum ? x < y : x > y));
    if (context.needs_input_grad(1)) context.set_fitted(1, unless(is_maximum ? x > y : x < y));
  }
};

Tensor add_or_sub(const Tensor& a, const Tensor& b, bool is_sum, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::binary(a, b, is_sum ? BinaryOp::Add : BinaryOp::Sub); });
  if (auto* node = record<AddNode>({.op = is_sum ? "add" : "sub", .where = where}, {a, b}, y))
    node->sign = is_sum ? 1 : -1;
  return y;
}

template <class N>
N* save_both(N* node, const Tensor& a, const Tensor& b) {
  if (node) {
    node->left.save_input(*node, a);
    node->right.save_input(*node, b);
  }
  return node;
}

Tensor extremum(const Tensor& a, const Tensor& b, bool is_maximum, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::binary(a, b, is_maximum ? BinaryOp::Maximum : BinaryOp::Minimum); });
  const OpInfo info{.op = is_maximum ? "maximum" : "minimum", .where = where};
  if (auto* node = save_both(record<LargerOrSmallerNode>(info, {a, b}, y), a, b)) node->is_maximum = is_maximum;
  return y;
}

// A step function: its gradient is zeros, not undefined.
struct SignNode final : Node {
  void backward(BackwardContext& context) override { context.set(0, zeros_like(context.grad())); }
};

// factor * x + constant: all sums, differences and products with a number.
struct ScaleNode final : Node {
  double factor = 1;
  void backward(BackwardContext& context) override {
    context.set(0, factor == 1 ? context.grad() : context.grad() * factor);
  }
  const autograd::ScaleMark* scale_mark() const noexcept override { return autograd::mark_of_number(factor); }
};

Tensor with_number(const char* op, const Tensor& x, Scalar number, BinaryOp kernel, bool reversed, double factor,
                   SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::binary_scalar(x, number, kernel, reversed); });
  if (auto* node = record<ScaleNode>({.op = op, .where = where}, {x}, y)) node->factor = factor;
  return y;
}

// Unary functions: `derivative` computes the gradient from grad, x and y; `keeps` selects which of x and y it needs.
template <class Derivative>
struct UnaryNode final : Node {
  SavedTensor x, y;
  void backward(BackwardContext& context) override {
    context.set(0, Derivative()(context.grad(), x.unpack(*this), y.unpack(*this)));
  }
};

template <class Derivative>
Tensor unary(const char* op, const Tensor& x, UnaryOp kernel, bool keep_input, bool keep_output, SourceLocation where) {
  Tensor y = located(where, [&] {
    if (kernels::takes_integers(kernel)) return kernels::unary(x, kernel);
    return of_reals(x, [kernel](const Tensor& r) { return kernels::unary(r, kernel); });
  });
  if (auto* node = record<UnaryNode<Derivative>>({.op = op, .where = where}, {x}, y)) {
    if (keep_input) node->x.save_input(*node, x);
    if (keep_output) node->y.save_output(*node, y);
  }
  return y;
}

struct NegDerivative {
  Tensor operator()(const Tensor& g, const Tensor&, const Tensor&) const { return -g; }
};
struct AbsDerivative {
  Tensor operator()(const Tensor& g, const Tensor& x, const Tensor&) const { return g * sign_of(x); }
};
struct ExpDerivative {
  Tensor operator()(const Tensor& g, const Tensor&, const Tensor& y) const { return g * y; }
};
struct LogDerivative {
  Tensor operator()(const Tensor& g, const Tensor& x, const Tensor&) const { return g / x; }
};
// 1 / (2 sqrt x)
struct SqrtDerivative {
  Tensor operator()(const Tensor& g, const Tensor&, const Tensor& y) const { return g / (y * 2.0); }
};
struct SquareDerivative {
  Tensor operator()(const Tensor& g, const Tensor& x, const Tensor&) const { return g * x * 2.0; }
};

Tensor compare(const char* op, const Tensor& a, const Tensor& b, CompareOp kernel, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::compare(a, b, kernel); });
  autograd::record_without_node({.op = op, .where = where, .differentiable = false}, {a, b}, y);
  return y;
}

Tensor compare(const char* op, const Tensor& a, Scalar b, CompareOp kernel, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::compare_scalar(a, b, kernel); });
  autograd::record_without_node({.op = op, .where = where, .differentiable = false}, {a}, y);
  return y;
}

}  // namespace

std::optional<double> autograd::detail::number_factor(const Node& node) {
  if (const auto* const scaled = dynamic_cast<const ScaleNode*>(&node)) return scaled->factor;
  if (const auto* const divided = dynamic_cast<const DivNumberNode*>(&node)) return 1 / divided->divisor;
  return std::nullopt;
}

Tensor add(const Tensor& a, const Tensor& b, SourceLocation where) { return add_or_sub(a, b, true, where); }
Tensor sub(const Tensor& a, const Tensor& b, SourceLocation where) { return add_or_sub(a, b, false, where); }

Tensor mul(const Tensor& a, const Tensor& b, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::binary(a, b, BinaryOp::Mul); });
  auto* node = record<MulNode>({.op = "mul", .where = where}, {a, b}, y);
  if (!node) return y;
  if (b.requires_grad()) node->left.save_input(*node, a);
  if (a.requires_grad()) node->right.save_input(*node, b);
  return y;
}

Tensor div(const Tensor& a, const Tensor& b, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::binary(a, b, BinaryOp::Div); });
  save_both(record<DivNode>({.op = "div", .where = where}, {a, b}, y), a, b);
  return y;
}

Tensor maximum(const Tensor& a, const Tensor& b, SourceLocation where) { return extremum(a, b, true, where); }
Tensor minimum(const Tensor& a, const Tensor& b, SourceLocation where) { return extremum(a, b, false, where); }

Tensor add(const Tensor& a, Scalar b, SourceLocation where) {
  return with_number("add", a, b, BinaryOp::Add, false, 1, where);
}
Tensor sub(const Tensor& a, Scalar b, SourceLocation where) {
  return with_number("sub", a, b, BinaryOp::Sub, false, 1, where);
}
Tensor sub(Scalar a, const Tensor& b, SourceLocation where) {
  return with_number("sub", b, a, BinaryOp::Sub, true, -1, where);
}
Tensor mul(const Tensor& a, Scalar b, SourceLocation where) {
  return with_number("mul", a, b, BinaryOp::Mul, false, b.to<double>(), where);
}
Tensor div(const Tensor& a, Scalar b, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::binary_scalar(a, b, BinaryOp::Div, false); });
  if (auto* node = record<DivNumberNode>({.op = "div", .where = where}, {a}, y)) node->divisor = b.to<double>();
  return y;
}

Tensor div(Scalar a, const Tensor& b, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"rdiv">(where, b)) return div(a, in[0], where);
  }
  Tensor y = located(where, [&] { return kernels::binary_scalar(b, a, BinaryOp::Div, true); });
  if (auto* node = record<NumberDivNode>({.op = "div", .where = where}, {b}, y)) {
    // Save a separate copy: both b and the result may be written to before backward, as in PyTorch.
    node->y.save_output(*node, kernels::clone(y));
    node->numerator = a.to<double>();
  }
  return y;
}

Tensor neg(const Tensor& x, SourceLocation where) {
  return unary<NegDerivative>("neg", x, UnaryOp::Neg, false, false, where);
}
Tensor abs(const Tensor& x, SourceLocation where) {
  return unary<AbsDerivative>("abs", x, UnaryOp::Abs, true, false, where);
}
Tensor exp(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"exp">(where, x)) return exp(in[0], where);
  }
  return unary<ExpDerivative>("exp", x, UnaryOp::Exp, false, true, where);
}
Tensor log(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"log">(where, x)) return log(in[0], where);
  }
  return unary<LogDerivative>("log", x, UnaryOp::Log, true, false, where);
}
Tensor sqrt(const Tensor& x, SourceLocation where) {
  return unary<SqrtDerivative>("sqrt", x, UnaryOp::Sqrt, false, true, where);
}
Tensor square(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"square">(where, x)) return square(in[0], where);
  }
  return unary<SquareDerivative>("square", x, UnaryOp::Square, true, false, where);
}
Tensor reciprocal(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"reciprocal">(where, x)) return reciprocal(in[0], where);
  }
  Tensor y = located(where, [&] { return kernels::binary_scalar(x, 1, BinaryOp::Div, true); });
  if (auto* node = record<NumberDivNode>({.op = "reciprocal", .where = where}, {x}, y)) node->y.save_output(*node, y);
  return y;
}

Tensor sign(const Tensor& x, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::unary(x, UnaryOp::Sign); });
  record<SignNode>({.op = "sign", .where = where}, {x}, y);
  return y;
}

Tensor eq(const Tensor& a, const Tensor& b, SourceLocation where) {
  return compare("eq", a, b, CompareOp::Equal, where);
}
Tensor ne(const Tensor& a, const Tensor& b, SourceLocation where) {
  return compare("ne", a, b, CompareOp::NotEqual, where);
}
Tensor lt(const Tensor& a, const Tensor& b, SourceLocation where) {
  return compare("lt", a, b, CompareOp::Less, where);
}
Tensor le(const Tensor& a, const Tensor& b, SourceLocation where) {
  return compare("le", a, b, CompareOp::LessEqual, where);
}
Tensor gt(const Tensor& a, const Tensor& b, SourceLocation where) {
  return compare("gt", a, b, CompareOp::Greater, where);
}
Tensor ge(const Tensor& a, const Tensor& b, SourceLocation where) {
  return compare("ge", a, b, CompareOp::GreaterEqual, where);
}
Tensor eq(const Tensor& a, Scalar b, SourceLocation where) { return compare("eq", a, b, CompareOp::Equal, where); }
Tensor ne(const Tensor& a, Scalar b, SourceLocation where) { return compare("ne", a, b, CompareOp::NotEqual, where); }
Tensor lt(const Tensor& a, Scalar b, SourceLocation where) { return compare("lt", a, b, CompareOp::Less, where); }
Tensor le(const Tensor& a, Scalar b, SourceLocation where) { return compare("le", a, b, CompareOp::LessEqual, where); }
Tensor gt(const Tensor& a, Scalar b, SourceLocation where) { return compare("gt", a, b, CompareOp::Greater, where); }
Tensor ge(const Tensor& a, Scalar b, SourceLocation where) {
  return compare("ge", a, b, CompareOp::GreaterEqual, where);
}

}  // namespace brigade
