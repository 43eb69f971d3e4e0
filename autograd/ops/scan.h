// Scans along a dimension: element i of the result is computed from elements 0..i.
//
// Integers and bool give int64 where they are allowed; half types are computed in float and rounded once. They throw
// IndexError for a dimension out of range, and DTypeError.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

Tensor cumsum(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());
// The gradient is correct even where elements are 0.
Tensor cumprod(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());
// log(cumsum(exp(x))), correct even where exp overflows. Floating dtypes. The gradient of -inf is 0.
Tensor logcumsumexp(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());

// y[i] = b[i] + a[i] y[i - 1] along `dim`, with y[-1] = 0; from the end, with y[i + 1], when `reverse`. Equal shapes,
// floating dtypes. cumsum is the case a = 1. The gradient of b is a recurrence in the opposite direction.
Tensor linear_recurrence(const Tensor& b, const Tensor& a, int64_t dim, bool reverse = false,
                         SourceLocation where = SourceLocation::current());

}  // namespace brigade
