// Slices of a tensor over the dimensions that a reduction removes: shapes and conversions.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::autograd::detail {

// `sizes` with the dimensions `dims` set to 1 (empty: all; negative ones count from the end). Throws IndexError.
Shape kept_sizes(const Shape& sizes, const Shape& dims);
// How many elements of a tensor of these sizes are reduced to one element of the result.
int64_t reduced_count(const Shape& sizes, const Shape& dims);

// x as [.., n], with the elements of each slice along the last dimension; differentiable. from_slices is the inverse,
// for a tensor of that shape.
Tensor to_slices(const Tensor& x, const Shape& dims);
Tensor from_slices(const Tensor& slices, const Shape& sizes, const Shape& dims);

// The diagonal of the last two dimensions, [.., n, m] -> [.., min(n, m)]; differentiable.
Tensor diagonal(const Tensor& x);

}  // namespace brigade::autograd::detail
