// Derivatives written as on paper: `grad * (1.0 - square_of(y))`. The operators and functions here are the
// differentiable operations without a source location, because what backward computes has no line in the user's code.
//
// A file of nodes writes `using namespace autograd::detail::algebra;` in its unnamed namespace. Overload resolution
// then prefers these operators to those of ops/arithmetic.h, which need a conversion to TensorArg. The functions have
// distinct names: a call of the same name would be ambiguous with an operation whose source location is a default
// argument, and in a unity build the names leak into the files that follow. The namespace has the names that such a
// file takes from autograd as well.
#pragma once

#include <brigade/autograd/ops/activation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/elementwise.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/record.h>
#include <brigade/core/tensor.h>

namespace brigade::autograd::detail::algebra {

using autograd::BackwardContext;
using autograd::Node;
using autograd::OpInfo;
using autograd::record;
using autograd::SavedTensor;

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b, {}); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b, {}); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b, {}); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b, {}); }
inline Tensor operator+(const Tensor& a, double b) { return add(a, b, {}); }
inline Tensor operator-(const Tensor& a, double b) { return sub(a, b, {}); }
inline Tensor operator*(const Tensor& a, double b) { return mul(a, b, {}); }
inline Tensor operator/(const Tensor& a, double b) { return div(a, b, {}); }
inline Tensor operator+(double a, const Tensor& b) { return add(b, a, {}); }
inline Tensor operator-(double a, const Tensor& b) { return sub(a, b, {}); }
inline Tensor operator*(double a, const Tensor& b) { return mul(b, a, {}); }
inline Tensor operator/(double a, const Tensor& b) { return div(a, b, {}); }
inline Tensor operator-(const Tensor& x) { return neg(x, {}); }

// Masks: bool tensors.
inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b, {}); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b, {}); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b, {}); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b, {}); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b, {}); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b, {}); }
inline Tensor operator==(const Tensor& a, double b) { return eq(a, b, {}); }
inline Tensor operator!=(const Tensor& a, double b) { return ne(a, b, {}); }
inline Tensor operator<(const Tensor& a, double b) { return lt(a, b, {}); }
inline Tensor operator<=(const Tensor& a, double b) { return le(a, b, {}); }
inline Tensor operator>(const Tensor& a, double b) { return gt(a, b, {}); }
inline Tensor operator>=(const Tensor& a, double b) { return ge(a, b, {}); }
inline Tensor operator&(const Tensor& a, const Tensor& b) { return logical_and(a, b, {}); }
inline Tensor operator|(const Tensor& a, const Tensor& b) { return logical_or(a, b, {}); }
inline Tensor operator!(const Tensor& mask) { return logical_not(mask, {}); }

// where(), under a name that the member Node::where does not hide.
inline Tensor choose(const Tensor& mask, const Tensor& a, const Tensor& b) { return brigade::where(mask, a, b, {}); }
inline Tensor choose(const Tensor& mask, const Tensor& a, double b) { return brigade::where(mask, a, b, {}); }
inline Tensor choose(const Tensor& mask, double a, const Tensor& b) { return brigade::where(mask, a, b, {}); }

// Reductions over `dims` that keep the dimensions as 1.
inline Tensor sum_over(const Tensor& x, const Shape& dims) { return brigade::sum(x, dims, true, {}); }
inline Tensor mean_over(const Tensor& x, const Shape& dims) { return brigade::mean(x, dims, true, {}); }

inline Tensor abs_of(const Tensor& x) { return abs(x, {}); }
inline Tensor cos_of(const Tensor& x) { return cos(x, {}); }
inline Tensor cosh_of(const Tensor& x) { return cosh(x, {}); }
inline Tensor erf_of(const Tensor& x) { return erf(x, {}); }
inline Tensor exp_of(const Tensor& x) { return exp(x, {}); }
inline Tensor log_of(const Tensor& x) { return log(x, {}); }
inline Tensor rsqrt_of(const Tensor& x) { return rsqrt(x, {}); }
inline Tensor sigmoid_of(const Tensor& x) { return sigmoid(x, {}); }
inline Tensor sign_of(const Tensor& x) { return sign(x, {}); }
inline Tensor sin_of(const Tensor& x) { return sin(x, {}); }
inline Tensor sinh_of(const Tensor& x) { return sinh(x, {}); }
inline Tensor sqrt_of(const Tensor& x) { return sqrt(x, {}); }
inline Tensor square_of(const Tensor& x) { return square(x, {}); }
inline Tensor tanh_of(const Tensor& x) { return tanh(x, {}); }

}  // namespace brigade::autograd::detail::algebra

namespace brigade::autograd::detail {

// --- The derivatives of gelu as operations that can be differentiated again.

// Phi(x) + x phi(x)
Tensor gelu_derivative(const Tensor& x);
// The derivative of the tanh approximation.
Tensor gelu_tanh_derivative(const Tensor& x);

// --- Normalization with differentiable operations, for backward with create_graph: the statistics are recomputed from
// x, so that derivatives of any order include their dependence on x.

struct Normalised {
  Tensor values;  // (x - mean) * rstd
  Tensor rstd;    // 1 / sqrt(biased variance + eps), with the dimensions kept as 1
};
// Normalizes over `dims`, around the mean if `centered`, otherwise around 0.
Normalised normalise(const Tensor& x, const Shape& dims, double eps, bool centered);
// The gradient of x, given `slope`, the gradient of the values.
Tensor normalised_gradient(const Tensor& slope, const Normalised& normalised, const Shape& dims, bool centered);

}  // namespace brigade::autograd::detail
