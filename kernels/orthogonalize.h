// Orthonormalizes the columns of a matrix.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// Makes the columns of `matrix` (n x r, floating, contiguous) orthonormal, in place and from left to right. A column
// that vanishes (such as one that depends on those before it) is replaced by that column of `fresh` (same sizes, dtype
// and device, contiguous; may be undefined), orthonormalized as well, or by zeros where that vanishes too. Modified
// Gram-Schmidt, twice for each column (Giraud et al., Numerische Mathematik 101, 2005); sums in float64. No host
// synchronization. Throws ShapeError and DTypeError.
extern Kernel<void(const Tensor& matrix, const Tensor& fresh)> orthogonalize;

}  // namespace brigade::kernels
