// The lower or upper triangle of matrices.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

enum class Triangle : uint8_t { Lower, Upper };

// x [.., rows, columns] with zeros above (Lower) or below (Upper) the diagonal (i, i + diagonal);
// any dtype, a dense copy. Throws ShapeError for fewer than two dimensions.
extern Kernel<Tensor(const Tensor& x, Triangle part, int64_t diagonal)> triangle;

}  // namespace brigade::kernels
