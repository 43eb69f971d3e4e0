// Logical operations by arithmetic on truth values, and tests for NaN and infinity by comparisons.
#include <brigade/autograd/ops/elementwise.h>

#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <limits>

namespace brigade {
namespace {

using autograd::record_without_node;
using autograd::detail::located;
using kernels::BinaryOp;
using kernels::CompareOp;
using kernels::UnaryOp;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor truth(const Tensor& x) { return x.dtype() == kBool ? x : kernels::compare_scalar(x, 0, CompareOp::NotEqual); }

Tensor pair(const char* op, const Tensor& a, const Tensor& b, BinaryOp kernel, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::binary(truth(a), truth(b), kernel); });
  record_without_node({.op = op, .where = where, .differentiable = false}, {a, b}, y);
  return y;
}

// |x| op infinity; integers are always finite.
Tensor beside_infinity(const char* op, const Tensor& x, CompareOp kernel, SourceLocation where) {
  Tensor y = located(where, [&] {
    if (!is_floating_point(x.dtype())) return full(x.sizes(), kernel == CompareOp::Less, {kBool, x.device()});
    return kernels::compare_scalar(kernels::unary(x, UnaryOp::Abs), kInfinity, kernel);
  });
  record_without_node({.op = op, .where = where, .differentiable = false}, {x}, y);
  return y;
}

}  // namespace

// The product of truth values is their "and", the larger one their "or".
Tensor logical_and(const Tensor& a, const Tensor& b, SourceLocation where) {
  return pair("logical_and", a, b, BinaryOp::Mul, where);
}
Tensor logical_or(const Tensor& a, const Tensor& b, SourceLocation where) {
  return pair("logical_or", a, b, BinaryOp::Maximum, where);
}
Tensor logical_xor(const Tensor& a, const Tensor& b, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::compare(truth(a), truth(b), CompareOp::NotEqual); });
  record_without_node({.op = "logical_xor", .where = where, .differentiable = false}, {a, b}, y);
  return y;
}
Tensor logical_not(const Tensor& x, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::compare_scalar(x, 0, CompareOp::Equal); });
  record_without_node({.op = "logical_not", .where = where, .differentiable = false}, {x}, y);
  return y;
}

Tensor isnan(const Tensor& x, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::compare(x, x, CompareOp::NotEqual); });
  record_without_node({.op = "isnan", .where = where, .differentiable = false}, {x}, y);
  return y;
}
Tensor isinf(const Tensor& x, SourceLocation where) { return beside_infinity("isinf", x, CompareOp::Equal, where); }
Tensor isfinite(const Tensor& x, SourceLocation where) {
  return beside_infinity("isfinite", x, CompareOp::Less, where);
}

Tensor isclose(const Tensor& a, const Tensor& b, const CloseOptions& options, SourceLocation where) {
  const NoGradGuard no_grad(where);
  const Tensor x = a.to(kFloat64, where), y = b.to(kFloat64, where);
  const Tensor bound = add(mul(abs(y, where), options.rtol, where), options.atol, where);
  const Tensor near = logical_and(le(abs(sub(x, y, where), where), bound, where), isfinite(y, where), where);
  Tensor result = logical_or(eq(x, y, where), near, where);
  if (options.equal_nan) result = logical_or(result, logical_and(isnan(x, where), isnan(y, where), where), where);
  return result;
}

bool allclose(const Tensor& a, const Tensor& b, const CloseOptions& options, SourceLocation where) {
  return all(isclose(a, b, options, where), {}, false, where).item<bool>(where);
}

bool equal(const Tensor& a, const Tensor& b, SourceLocation where) {
  return a.sizes() == b.sizes() && all(eq(a, b, where), {}, false, where).item<bool>(where);
}

}  // namespace brigade
