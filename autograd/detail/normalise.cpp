// Mean, variance and rstd from x by operations, and the gradient of x from that of the result.
#include <brigade/autograd/detail/normalise.h>

#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/reduce.h>

namespace brigade::autograd::detail {

Normalised normalise(const Tensor& x, const Shape& dims, double eps, bool centered) {
  const Tensor distance = centered ? sub(x, mean(x, dims, true, {}), {}) : x;
  const Tensor variance = mean(square(distance, {}), dims, true, {});
  const Tensor rstd = div(1.0, sqrt(add(variance, eps, {}), {}), {});
  return {mul(distance, rstd, {}), rstd};
}

Tensor normalised_gradient(const Tensor& slope, const Normalised& normalised, const Shape& dims, bool centered) {
  const Tensor dot = mean(mul(slope, normalised.values, {}), dims, true, {});
  const Tensor rest = sub(slope, mul(normalised.values, dot, {}), {});
  const Tensor pull = centered ? sub(rest, mean(slope, dims, true, {}), {}) : rest;
  return mul(pull, normalised.rstd, {});
}

}  // namespace brigade::autograd::detail
