// Computes mean, variance and rstd from x with differentiable operations, and the gradient of x from the result's.
#include <brigade/autograd/detail/normalise.h>

#include <brigade/autograd/detail/algebra.h>

namespace brigade::autograd::detail {

using namespace algebra;

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
