// Running results along a dimension: element i of the result is made of elements 0..i.
//
// Integers and bool give int64 where they are allowed; half types are computed in float and rounded
// once. Throw IndexError for a dimension that is not there, DTypeError.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

Tensor cumsum(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());
// The gradient holds where elements are 0.
Tensor cumprod(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());
// log(cumsum(exp(x))), right where exp overflows. Floating dtypes. The gradient of -inf is 0.
Tensor logcumsumexp(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());

// y[i] = b[i] + a[i] y[i - 1] along `dim`, with y[-1] = 0; from the end, with y[i + 1], when
// `reverse`. Equal shapes, floating dtypes. cumsum is the case a = 1. It is its own derivative:
// that of b is a recurrence the other way.
Tensor linear_recurrence(const Tensor& b, const Tensor& a, int64_t dim, bool reverse = false,
                         SourceLocation where = SourceLocation::current());

}  // namespace brigade
