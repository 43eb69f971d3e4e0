// Vector norms over dimensions.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// (sum |x|^p)^(1/p) over `dims` (empty: all of them); p may be inf or -inf (the largest or the smallest |x|), 0 (the
// number of nonzero elements) or negative. Floating dtypes; computed in float for half types. Throws DTypeError,
// IndexError, ShapeError for an infinite or negative p over no elements.
extern Kernel<Tensor(const Tensor& x, double p, const Shape& dims, bool keepdim)> norm;

}  // namespace brigade::kernels
