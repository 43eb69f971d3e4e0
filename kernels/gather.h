// Elements along one dimension by index: read, written, added to; and the positions of what is not
// zero.
//
// Any dtype. Indices are int64 and name places 0..size-1 along `dim`; IndexError with the position
// (in row-major order) and value of one that does not. On a CUDA device that error comes late
// (core/cuda/device_error.h); until then a bad index reads zeros and writes nothing.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// result[.., i, ..] = x[.., index[.., i, ..], ..]: as many dimensions as x, and no longer than x
// but along `dim`. The result has the shape of `index`. Throws ShapeError, DTypeError, DeviceError.
extern Kernel<Tensor(const Tensor& x, int dim, const Tensor& index)> gather;

// What is put at the places that an index names.
struct Scatter {
  Tensor source = {};  // of the dtype of x, at least of the shape of the index; undefined: `value`
  Scalar value = 0;
  bool add = false;       // the source is added; half types in float, rounded once
  bool slices = false;    // the index is [n] and names whole slices of x; the source has n of them
  bool distinct = false;  // the caller knows that the index names no place twice
};
// A copy of x [..] with result[.., index[.., i, ..], ..] = source[.., i, ..]. Where a place is
// named several times the last one stays, or all are added in their order: the same bits each time,
// on every device. Throws ShapeError, DTypeError (also for adding to bool), DeviceError.
extern Kernel<Tensor(const Tensor& x, int dim, const Tensor& index, const Scatter& how)> scatter;

// The coordinates of the elements that are not zero, in row-major order: int64 [count, dimensions
// of x]. A NaN is not zero. Waits for the device.
extern Kernel<Tensor(const Tensor& x)> nonzero;

}  // namespace brigade::kernels
