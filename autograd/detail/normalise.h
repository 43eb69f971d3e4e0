// Normalisation by differentiable operations, for backward with create_graph: the statistics are
// made again from x, so that derivatives of any order see how they depend on it.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::autograd::detail {

struct Normalised {
  Tensor values;  // (x - mean) * rstd
  Tensor rstd;    // 1 / sqrt(biased variance + eps), with the dimensions kept as 1
};
// Over `dims`; around the mean, or around 0 unless `centered`.
Normalised normalise(const Tensor& x, const Shape& dims, double eps, bool centered);
// The gradient of x from `slope`, that of the values.
Tensor normalised_gradient(const Tensor& slope, const Normalised& normalised, const Shape& dims, bool centered);

}  // namespace brigade::autograd::detail
