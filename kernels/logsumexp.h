// The logarithm of a sum of exponentials over dimensions.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// log(sum exp x) over `dims` (empty: all of them), with the largest element subtracted first. Floating dtypes; computed
// in float for half types. The result is -inf for no elements or only -inf. Throws DTypeError, ShapeError, IndexError.
extern Kernel<Tensor(const Tensor& x, const Shape& dims, bool keepdim)> logsumexp;

}  // namespace brigade::kernels
