// The largest and the smallest element over dimensions, without their indices (reduce.h returns indices).
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// Over `dims` (empty: all of them); all dtypes. NaNs propagate. Throws ShapeError for an empty reduction, IndexError.
extern Kernel<Tensor(const Tensor& x, const Shape& dims, bool keepdim)> amax;
extern Kernel<Tensor(const Tensor& x, const Shape& dims, bool keepdim)> amin;

}  // namespace brigade::kernels
