// Orthonormal columns.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// Makes the columns of `matrix` (n x r, floating, contiguous) orthonormal, in place and from left to right. A column
// that vanishes, as one that depends on those before it, becomes that of `fresh` (the same sizes, dtype and device,
// contiguous; or undefined), made orthonormal as well; zeros where that vanishes too. Modified Gram-Schmidt, twice for
// each column (Giraud et al., Numerische Mathematik 101, 2005); sums in float64. Nothing waits for a device.
// Throws ShapeError and DTypeError.
extern Kernel<void(const Tensor& matrix, const Tensor& fresh)> orthogonalize;

}  // namespace brigade::kernels
