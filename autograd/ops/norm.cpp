// The node of a norm, whose gradient depends on the order; normalize and cosine_similarity use it.
#include <brigade/autograd/ops/reduce.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/reduce.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;

// A mask of 1 and 0 in the dtype of x, without history.
Tensor ones_where(const Tensor& x, kernels::CompareOp op, double number) {
  return kernels::cast(kernels::compare_scalar(x, number, op), x.dtype());
}
Tensor ones_where_not(const Tensor& mask) { return kernels::binary_scalar(mask, 1.0, kernels::BinaryOp::Sub, true); }
// a / b, and 0 where b is 0.
Tensor div_or_zero(const Tensor& a, const Tensor& b) {
  const Tensor is_zero = ones_where(b, kernels::CompareOp::Equal, 0.0);
  return a / (b + is_zero) * ones_where_not(is_zero);
}
// x^e for x >= 0, and 0 where x is 0.
Tensor power_or_zero(const Tensor& x, double e) {
  const Tensor is_zero = ones_where(x, kernels::CompareOp::Equal, 0.0);
  return exp_of(log_of(x + is_zero) * e) * ones_where_not(is_zero);
}

struct NormNode final : Node {
  SavedTensor x, y;
  Shape dims;
  double p = 2;

  // By differentiable operations; the common orders take one or two passes over x.
  void backward(BackwardContext& context) override {
    const Tensor given = x.unpack(*this);
    if (p == 0) return context.set(0, zeros_like(given));  // a count is constant nearly everywhere
    const Shape kept = kept_sizes(given.sizes(), dims);
    const Tensor grad = widened(context.grad()).reshape(kept, {});
    const Tensor result = widened(y.unpack(*this)).reshape(kept, {});
    context.set(0, in_dtype(slope(widened(given), result) * grad, given.dtype()));
  }

 private:
  Tensor slope(const Tensor& values, const Tensor& result) const {
    // This quotient is at most 1; a gradient divided by the norm may overflow.
    if (p == 2) return div_or_zero(values, result);
    const Tensor signs = kernels::unary(values, kernels::UnaryOp::Sign);
    if (p == 1) return signs;
    if (std::isinf(p)) return shares(values, result, signs);
    // sign(x) |x|^(p - 1) / norm^(p - 1), as a power of the quotient, which overflows less easily than its parts.
    return signs * power_or_zero(div_or_zero(abs_of(values), result), p - 1);
  }
  // The shares of the elements whose absolute value is the norm; a NaN is one of them.
  Tensor shares(const Tensor& values, const Tensor& result, const Tensor& signs) const {
    using enum kernels::CompareOp;
    const Tensor chosen =
        kernels::binary(kernels::compare(kernels::unary(values, kernels::UnaryOp::Abs), result, Equal),
                        kernels::compare(values, values, NotEqual), kernels::BinaryOp::Maximum);
    const Tensor count = kernels::cast(kernels::sum(chosen, {.dims = dims, .keepdim = true}), values.dtype());
    const Tensor share = kernels::binary_scalar(count, 1.0, kernels::BinaryOp::Div, true);
    return kernels::binary(kernels::binary(kernels::cast(chosen, values.dtype()), share, kernels::BinaryOp::Mul), signs,
                           kernels::BinaryOp::Mul);
  }
};

Tensor apply(const char* op, const Tensor& x, double p, const Dims& dims, bool keepdim, SourceLocation where) {
  Tensor y = located(op, where, [&] { return kernels::norm(x, p, dims, keepdim); });
  if (auto* node = record<NormNode>({.op = op, .where = where}, {x}, y)) {
    node->x.save_input(*node, x);
    node->y.save_output(*node, y);
    node->dims = dims;
    node->p = p;
  }
  return y;
}

}  // namespace

Tensor norm(const Tensor& x, double p, const Dims& dims, bool keepdim, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"norm">(where, x)) return norm(in[0], p, dims, keepdim, where);
  }
  return apply("norm", x, p, dims, keepdim, where);
}
Tensor vector_norm(const Tensor& x, double ord, const Dims& dims, bool keepdim, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"vector_norm">(where, x))
      return vector_norm(in[0], ord, dims, keepdim, where);
  }
  return apply("vector_norm", x, ord, dims, keepdim, where);
}

Tensor matrix_norm(const Tensor& x, const Dims& dims, bool keepdim, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"matrix_norm">(where, x)) return matrix_norm(in[0], dims, keepdim, where);
  }
  if (dims.size() != 2 || x.dim() < 2) {
    throw ShapeError(where,
                     "matrix_norm: expected two dimensions of a tensor with at least two, got {} of {}; vector_norm "
                     "takes any",
                     dims, x.sizes());
  }
  return apply("matrix_norm", x, 2, dims, keepdim, where);
}

Tensor normalize(const Tensor& x, double p, int64_t dim, double eps, SourceLocation where) {
  const Tensor size = norm(x, p, {dim}, true, where);
  // Like a clamp: no gradient through the norm where eps is larger.
  const Tensor is_large = ones_where_not(ones_where(size, kernels::CompareOp::Less, eps));
  const Tensor least = kernels::binary_scalar(ones_where_not(is_large), eps, kernels::BinaryOp::Mul, false);
  return div(x, add(mul(size, is_large, where), least, where), where);
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim, double eps, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"cosine_similarity">(where, a, b))
      return cosine_similarity(in[0], in[1], dim, eps, where);
  }
  const Shape sizes = located("cosine_similarity", where, [&] { return broadcast_shapes(a.sizes(), b.sizes()); });
  const int at = dimension_of("cosine_similarity", dim, sizes.size(), where);
  const DType dtype = kernels::result_type({a, b});
  located(where, [&] { kernels::check_floating(dtype, "cosine_similarity"); });
  const DType wide = is_half(dtype) ? kFloat32 : dtype;
  const double most = wide == kFloat64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  const double limit = std::sqrt(most / static_cast<double>(std::max<int64_t>(1, sizes[at])));
  const auto scaled = [&](const Tensor& x) {
    const Tensor given = in_dtype(x, wide).expand(sizes, where);
    // If squares would overflow, first divide the vector by its largest element: a constant that the cosine does not
    // depend on.
    const Tensor largest =
        kernels::binary_scalar(kernels::norm(given, std::numeric_limits<double>::infinity(), {at}, true), most,
                               kernels::BinaryOp::Minimum, false);
    const Tensor unit =
        kernels::where(kernels::compare_scalar(largest, limit, kernels::CompareOp::Greater), largest, 1.0);
    const Tensor vector = div(given, unit, where);
    const Tensor size = norm(vector, 2, {at}, true, where);
    // The amount that a clamp to eps would add, without a derivative.
    const Tensor least = kernels::binary_scalar(unit, eps, kernels::BinaryOp::Div, true);
    const Tensor is_small = kernels::compare(size, least, kernels::CompareOp::Less);
    const Tensor missing = kernels::where(is_small, kernels::binary(least, size, kernels::BinaryOp::Sub), 0.0);
    return div(vector, add(size, missing, where), where);
  };
  return in_dtype(sum(mul(scaled(a), scaled(b), where), {at}, false, where), dtype);
}

}  // namespace brigade
