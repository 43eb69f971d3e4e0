// Normalization with differentiable operations, for backward with create_graph: the statistics are recomputed from x,
// so that derivatives of any order include their dependence on x.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::autograd::detail {

struct Normalised {
  Tensor values;  // (x - mean) * rstd
  Tensor rstd;    // 1 / sqrt(biased variance + eps), with the dimensions kept as 1
};
// Normalizes over `dims`, around the mean if `centered`, otherwise around 0.
Normalised normalise(const Tensor& x, const Shape& dims, double eps, bool centered);
// The gradient of x, given `slope`, the gradient of the values.
Tensor normalised_gradient(const Tensor& slope, const Normalised& normalised, const Shape& dims, bool centered);

}  // namespace brigade::autograd::detail
