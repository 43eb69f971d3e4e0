// Joining and splitting tensors.
#pragma once

#include <brigade/core/tensor.h>

#include <vector>

namespace brigade {

// Shapes are equal except in `dim`; dtypes are promoted. Throws a ShapeError that names the first tensor that does not
// fit.
Tensor cat(const std::vector<Tensor>& tensors, int64_t dim = 0, SourceLocation where = SourceLocation::current());
// Equal shapes, joined along a new dimension.
Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0, SourceLocation where = SourceLocation::current());
// Views of `size` along `dim` (the last may be shorter).
std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim = 0,
                          SourceLocation where = SourceLocation::current());
// At most `count` views of equal size (the last may be shorter).
std::vector<Tensor> chunk(const Tensor& x, int64_t count, int64_t dim = 0,
                          SourceLocation where = SourceLocation::current());
// Slices of x along `dim` at int64 or int32 indices [n]. Throws IndexError with the position and
// value of a bad index.
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& indices,
                    SourceLocation where = SourceLocation::current());
// int64 zeros and ones [..., classes] from class indices [...]. No derivative. Throws IndexError.
Tensor one_hot(const Tensor& indices, int64_t classes, SourceLocation where = SourceLocation::current());

}  // namespace brigade
