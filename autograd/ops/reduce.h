// Reductions. `dims` empty means all dimensions; negative ones count from the end.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// Floating dtypes keep theirs; integers and bool sum to int64.
Tensor sum(const Tensor& x, const Shape& dims = {}, bool keepdim = false,
           SourceLocation where = SourceLocation::current());
// Floating dtypes only.
Tensor mean(const Tensor& x, const Shape& dims = {}, bool keepdim = false,
            SourceLocation where = SourceLocation::current());
// Values and int64 indices along one dimension (the first of equals); the gradient goes to the chosen elements.
struct MinMax {
  Tensor values;
  Tensor indices;
};
MinMax max(const Tensor& x, int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current());
MinMax min(const Tensor& x, int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current());
// No derivative.
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current());
// The sum over the dimensions that broadcasting from `sizes` would add or stretch.
Tensor sum_to(const Tensor& x, const Shape& sizes, SourceLocation where = SourceLocation::current());

}  // namespace brigade
