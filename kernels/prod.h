// Products over dimensions.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// Over `dims` (empty: all of them). Floating dtypes are kept (half types are multiplied in float); integers and bool
// give int64. The product of no elements is 1. Throws ShapeError, IndexError.
extern Kernel<Tensor(const Tensor& x, const Shape& dims, bool keepdim)> prod;

}  // namespace brigade::kernels
