// The largest and the smallest element over dimensions, without their places (those: reduce.h).
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// Over `dims` (empty: all of them); all dtypes. A NaN wins. Throws ShapeError where there is
// nothing to choose from, IndexError.
extern Kernel<Tensor(const Tensor& x, const Shape& dims, bool keepdim)> amax;
extern Kernel<Tensor(const Tensor& x, const Shape& dims, bool keepdim)> amin;

}  // namespace brigade::kernels
