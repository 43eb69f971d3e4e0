// The logarithm of a sum of exponentials over dimensions.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// log(sum exp x) over `dims` (empty: all of them), with the largest element subtracted first.
// Floating dtypes; computed in float for half types. Of no elements, or of nothing but -inf: -inf.
// Throws DTypeError, ShapeError, IndexError.
extern Kernel<Tensor(const Tensor& x, const Shape& dims, bool keepdim)> logsumexp;

}  // namespace brigade::kernels
