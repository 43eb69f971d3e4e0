// Elementary functions, element by element; the result has the shape and dtype of x, float32 for
// integers and bools. (exp, log, sqrt and the like are in arithmetic.h.)
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// 1 / sqrt(x)
Tensor rsqrt(const Tensor& x, SourceLocation where = SourceLocation::current());
// Angles are in radians.
Tensor sin(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor cos(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor tan(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor asin(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor acos(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor atan(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor sinh(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor cosh(const Tensor& x, SourceLocation where = SourceLocation::current());
// log(1 + x) and exp(x) - 1, precise near 0.
Tensor log1p(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor expm1(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor log2(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor log10(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor exp2(const Tensor& x, SourceLocation where = SourceLocation::current());
// The error function, and one minus it.
Tensor erf(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor erfc(const Tensor& x, SourceLocation where = SourceLocation::current());

// Rounding to whole numbers. Integers are allowed (and copied). The gradient is zero everywhere, as in PyTorch.
Tensor floor(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor ceil(const Tensor& x, SourceLocation where = SourceLocation::current());
// Rounds to the nearest; ties go to the even number.
Tensor round(const Tensor& x, SourceLocation where = SourceLocation::current());
// Rounds towards 0.
Tensor trunc(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace brigade
