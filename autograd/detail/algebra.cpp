// The derivatives of gelu and of normalizations, operation by operation.
#include <brigade/autograd/detail/algebra.h>

#include <brigade/kernels/common/activation.h>

namespace brigade::autograd::detail {

using namespace algebra;

// d/dx of x Phi(x) is Phi(x) + x phi(x).
Tensor gelu_derivative(const Tensor& x) {
  const Tensor cdf = (erf_of(x * kernels::kSqrtHalf) + 1.0) * 0.5;
  const Tensor pdf = exp_of(square_of(x) * -0.5) * (kernels::kSqrtHalf * std::numbers::inv_sqrtpi);
  return cdf + x * pdf;
}

// With t = tanh(u), u = sqrt(2 / pi) (x + 0.044715 x^3): (1 + t) / 2 + x (1 - t^2) u' / 2
Tensor gelu_tanh_derivative(const Tensor& x) {
  const Tensor squares = square_of(x);
  const Tensor t = tanh_of(x * (squares * kernels::kGeluCubic + 1.0) * kernels::kSqrtTwoOverPi);
  const Tensor inner = (squares * (3 * kernels::kGeluCubic) + 1.0) * kernels::kSqrtTwoOverPi;
  const Tensor rest = x * ((1.0 - square_of(t)) * inner);
  return (t + 1.0 + rest) * 0.5;
}

// --- Computes mean, variance and rstd from x with differentiable operations, and the gradient of x from the result's.

Normalised normalise(const Tensor& x, const Shape& dims, double eps, bool centered) {
  const Tensor distance = centered ? x - mean_over(x, dims) : x;
  const Tensor variance = mean_over(square_of(distance), dims);
  const Tensor rstd = 1.0 / sqrt_of(variance + eps);
  return {distance * rstd, rstd};
}

// rstd (slope - values mean(slope values) - mean(slope))
Tensor normalised_gradient(const Tensor& slope, const Normalised& normalised, const Shape& dims, bool centered) {
  const Tensor dot = mean_over(slope * normalised.values, dims);
  const Tensor rest = slope - normalised.values * dot;
  const Tensor pull = centered ? rest - mean_over(slope, dims) : rest;
  return pull * normalised.rstd;
}

}  // namespace brigade::autograd::detail
