// Order along a dimension.
//
// Any dtype. A NaN counts as larger than any number. Equal elements stay in their order, whether
// that is asked for or not: the same result each time, on every device. Gradients go to where the
// values came from.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// Values, and int64 indices of where they were along the dimension.
struct SortResult {
  Tensor values;
  Tensor indices;
};
SortResult sort(const Tensor& x, int64_t dim = -1, bool descending = false, bool stable = false,
                SourceLocation where = SourceLocation::current());
// The indices alone; no derivative.
Tensor argsort(const Tensor& x, int64_t dim = -1, bool descending = false, bool stable = false,
               SourceLocation where = SourceLocation::current());
// The k largest (or smallest) along a dimension; they come in order, also when that is not asked
// for. Throws
// ValueError for a k outside of 0..size.
SortResult topk(const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true,
                SourceLocation where = SourceLocation::current());

}  // namespace brigade
