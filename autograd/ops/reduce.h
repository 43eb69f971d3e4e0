// Sums, products and counts over dimensions (extremes.h, variance.h and norm.h have the other
// reductions). `dims` empty means all dimensions; negative ones count from the end. Throw
// IndexError, and ShapeError for a dimension named twice.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// Floating dtypes keep theirs; integers and bool sum to int64.
Tensor sum(const Tensor& x, const Shape& dims = {}, bool keepdim = false,
           SourceLocation where = SourceLocation::current());
// Floating dtypes only.
Tensor mean(const Tensor& x, const Shape& dims = {}, bool keepdim = false,
            SourceLocation where = SourceLocation::current());
// Floating dtypes keep theirs; integers and bool give int64. Of no elements: 1. The derivative
// needs no element to differ from 0.
Tensor prod(const Tensor& x, const Shape& dims = {}, bool keepdim = false,
            SourceLocation where = SourceLocation::current());
// log(sum exp x), with the largest element subtracted first. Integers are converted to float32.
Tensor logsumexp(const Tensor& x, const Shape& dims = {}, bool keepdim = false,
                 SourceLocation where = SourceLocation::current());

// Without derivatives; a NaN is not 0.
// int64.
Tensor count_nonzero(const Tensor& x, const Shape& dims = {}, SourceLocation where = SourceLocation::current());
// Whether any, and whether all, elements differ from 0: bool (uint8 for uint8, as PyTorch has it).
Tensor any(const Tensor& x, const Shape& dims = {}, bool keepdim = false,
           SourceLocation where = SourceLocation::current());
Tensor all(const Tensor& x, const Shape& dims = {}, bool keepdim = false,
           SourceLocation where = SourceLocation::current());

// Over one dimension: sum(x, 1).
template <OneDim Dim>
Tensor sum(const Tensor& x, Dim dim, bool keepdim = false, SourceLocation where = SourceLocation::current()) {
  return sum(x, Shape{static_cast<int64_t>(dim)}, keepdim, where);
}
template <OneDim Dim>
Tensor mean(const Tensor& x, Dim dim, bool keepdim = false, SourceLocation where = SourceLocation::current()) {
  return mean(x, Shape{static_cast<int64_t>(dim)}, keepdim, where);
}
template <OneDim Dim>
Tensor prod(const Tensor& x, Dim dim, bool keepdim = false, SourceLocation where = SourceLocation::current()) {
  return prod(x, Shape{static_cast<int64_t>(dim)}, keepdim, where);
}
template <OneDim Dim>
Tensor logsumexp(const Tensor& x, Dim dim, bool keepdim = false, SourceLocation where = SourceLocation::current()) {
  return logsumexp(x, Shape{static_cast<int64_t>(dim)}, keepdim, where);
}
template <OneDim Dim>
Tensor any(const Tensor& x, Dim dim, bool keepdim = false, SourceLocation where = SourceLocation::current()) {
  return any(x, Shape{static_cast<int64_t>(dim)}, keepdim, where);
}
template <OneDim Dim>
Tensor all(const Tensor& x, Dim dim, bool keepdim = false, SourceLocation where = SourceLocation::current()) {
  return all(x, Shape{static_cast<int64_t>(dim)}, keepdim, where);
}

// The sum over the dimensions that broadcasting from `sizes` would add or stretch.
Tensor sum_to(const Tensor& x, const Shape& sizes, SourceLocation where = SourceLocation::current());

}  // namespace brigade
