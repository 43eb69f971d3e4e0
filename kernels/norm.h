// Vector norms over dimensions.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// (sum |x|^p)^(1/p) over `dims` (empty: all of them); p may be infinite (the largest, or the
// smallest, |x|), 0 (how many are not 0) or negative. Floating dtypes; computed in float for half
// types. Throws DTypeError, IndexError, ShapeError where an infinite or negative norm of no
// elements is asked for.
extern Kernel<Tensor(const Tensor& x, double p, const Shape& dims, bool keepdim)> norm;

}  // namespace brigade::kernels
