// Sums, products and counts over dimensions (extremes.h, variance.h and norm.h have the other reductions). Empty `dims`
// means all dimensions, a number means one; negative ones count from the end. They throw IndexError, and ShapeError for
// a dimension named twice.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// Floating dtypes are kept; integers and bool sum to int64.
Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
           SourceLocation where = SourceLocation::current());
// Floating dtypes only.
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
            SourceLocation where = SourceLocation::current());
// Floating dtypes are kept; integers and bool give int64. The product of no elements is 1. The derivative is correct
// even where elements are 0.
Tensor prod(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
            SourceLocation where = SourceLocation::current());
// log(sum exp x), with the largest element subtracted first. Integers are converted to float32.
Tensor logsumexp(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
                 SourceLocation where = SourceLocation::current());

// No derivatives; a NaN is not 0.
// int64.
Tensor count_nonzero(const Tensor& x, const Dims& dims = {}, SourceLocation where = SourceLocation::current());
// Whether any, or all, elements differ from 0: bool (uint8 for uint8, as in PyTorch).
Tensor any(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
           SourceLocation where = SourceLocation::current());
Tensor all(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
           SourceLocation where = SourceLocation::current());

// The sum over the dimensions that broadcasting from `sizes` would add or stretch; x itself where it has these sizes,
// but an integer or bool for `sizes` [] becomes int64. Throws ShapeError where `sizes` do not broadcast to those of x.
Tensor sum_to(const Tensor& x, const Shape& sizes, SourceLocation where = SourceLocation::current());

}  // namespace brigade
