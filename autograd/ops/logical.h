// Truth values, element by element: bool results, no derivative. Every dtype; a number is true when
// it is not 0, so a NaN is true. Tensors broadcast.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

Tensor logical_and(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor logical_or(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor logical_xor(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor logical_not(const Tensor& x, SourceLocation where = SourceLocation::current());

Tensor isnan(const Tensor& x, SourceLocation where = SourceLocation::current());
// Of either sign.
Tensor isinf(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor isfinite(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace brigade
