// Sorting along a dimension.
//
// Any dtype. A NaN counts as larger than any number. Sorting is always stable, whether requested or not: the result is
// the same each time, on every device. Gradients go to where the values came from.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// Values, and int64 indices of their original positions along the dimension.
struct SortResult {
  Tensor values;
  Tensor indices;
};
SortResult sort(const Tensor& x, int64_t dim = -1, bool descending = false, bool stable = false,
                SourceLocation where = SourceLocation::current());
// The indices alone; no derivative.
Tensor argsort(const Tensor& x, int64_t dim = -1, bool descending = false, bool stable = false,
               SourceLocation where = SourceLocation::current());
// The k largest (or smallest) along a dimension, always in order, even if not requested. Throws ValueError for a k
// outside of 0..size.
SortResult topk(const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true,
                SourceLocation where = SourceLocation::current());

}  // namespace brigade
