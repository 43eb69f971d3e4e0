// min, max, argmin, argmax, amin, amax, for all dtypes. NaN propagates: it counts as larger and as smaller than any
// number. They throw ShapeError for an empty reduction and IndexError for a dimension out of range.
#pragma once

#include <brigade/autograd/ops/arithmetic.h>

namespace brigade {

// Values and int64 indices along one dimension (the first of equal ones); the gradient goes to the chosen elements.
struct MinMax {
  Tensor values;
  Tensor indices;
};
MinMax max(const Tensor& x, int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current());
MinMax min(const Tensor& x, int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current());
// Over all elements; equal extremes share the gradient evenly.
Tensor max(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor min(const Tensor& x, SourceLocation where = SourceLocation::current());
// Elementwise.
inline Tensor max(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current()) {
  return maximum(a, b, where);
}
inline Tensor min(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current()) {
  return minimum(a, b, where);
}
// Over `dims` (empty: all); equal extremes share the gradient evenly.
Tensor amax(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
            SourceLocation where = SourceLocation::current());
Tensor amin(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
            SourceLocation where = SourceLocation::current());

// int64, no derivative. Without a dimension: the index in row-major order among all elements.
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current());
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current());
Tensor argmax(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor argmin(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace brigade
