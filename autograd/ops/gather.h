// Elements and slices by index: read, written, added to, and chosen by a mask.
//
// Any dtype. Indices are int64 or int32; one outside 0..size-1 is an IndexError with its position
// (in row-major order) and value, which on a CUDA device comes late (core/cuda/device_error.h).
// Nothing is written in place: the functions that write return a copy of x. A source has the dtype
// of x, and has to be on its device. They throw IndexError, ShapeError, DTypeError, DeviceError.
#pragma once

#include <brigade/core/tensor.h>

#include <optional>

namespace brigade {

// result[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`. The index has as many dimensions as x, and may be longer
// than x only along `dim`; the result has the shape of the index. The gradient is scatter_add.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index, SourceLocation where = SourceLocation::current());
// Like gather, with x and the index broadcast against each other except in `dim`. Without `dim`, x is flattened.
Tensor take_along_dim(const Tensor& x, const Tensor& indices, std::optional<int64_t> dim = std::nullopt,
                      SourceLocation where = SourceLocation::current());

// result[.., index[.., i, ..], ..] = source[.., i, ..]. The source is at least as long as the index along every
// dimension. If an index occurs several times, the last of its sources wins; as in PyTorch, the gradient assumes that
// each index occurs once.
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
               SourceLocation where = SourceLocation::current());
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Scalar value,
               SourceLocation where = SourceLocation::current());
// The same with += in place of =: added in the order of the positions, with bitwise equal results each time.
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                   SourceLocation where = SourceLocation::current());

// Whole slices of x along `dim`, selected by an index [n]; the source has the shape of x, with n along `dim`. The only
// slice of a tensor without dimensions is the tensor itself.
// x + alpha * source
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1,
                 SourceLocation where = SourceLocation::current());
Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                  SourceLocation where = SourceLocation::current());
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, Scalar value,
                  SourceLocation where = SourceLocation::current());

// The elements of x where the bool mask holds, in row-major order: [count]. x and the mask are
// broadcast against each other. Waits for the device, since the count is not known before.
Tensor masked_select(const Tensor& x, const Tensor& mask, SourceLocation where = SourceLocation::current());
// The coordinates of the elements that are not zero: int64 [count, dimensions of x], in row-major order. No derivative;
// waits for the device.
Tensor nonzero(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace brigade
