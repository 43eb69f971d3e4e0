// Elementwise operations on three tensors (addcmul, addcdiv, lerp), broadcast, in one pass: floating dtypes, computed
// in their common dtype. They throw ShapeError and DTypeError.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// x + value * a * b
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value = 1,
               SourceLocation where = SourceLocation::current());
// x + value * a / b
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, double value = 1,
               SourceLocation where = SourceLocation::current());
// start + weight (end - start)
Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight,
            SourceLocation where = SourceLocation::current());
Tensor lerp(const Tensor& start, const Tensor& end, double weight, SourceLocation where = SourceLocation::current());

}  // namespace brigade
