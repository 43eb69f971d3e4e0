// Gather and scatter along one dimension by index, and the coordinates of nonzero elements.
//
// Any dtype. Indices are int64 in 0..size-1 along `dim`; IndexError names the position (in row-major order) and value
// of one that is not. On a CUDA device that error is reported late (core/cuda/device_error.h); until then a bad index
// reads zeros and writes nothing.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// result[.., i, ..] = x[.., index[.., i, ..], ..]: the index has as many dimensions as x, and is no larger than x
// except along `dim`. The result has the shape of `index`. Throws ShapeError, DTypeError, DeviceError.
extern Kernel<Tensor(const Tensor& x, int dim, const Tensor& index)> gather;

// What scatter writes at the indexed elements.
struct Scatter {
  Tensor source = {};  // of the dtype of x, at least as large as the index; undefined: `value`
  Scalar value = 0;
  bool add = false;       // adds the source; half types in float, rounded once
  bool slices = false;    // the index is [n] and selects whole slices of x; the source has n slices
  bool distinct = false;  // the caller guarantees that the index has no duplicates
};
// A copy of x [..] with result[.., index[.., i, ..], ..] = source[.., i, ..]. With duplicate indices the last one wins,
// or all are added in order: the same bits each time, on every device. Throws ShapeError, DTypeError (also for adding
// to bool), DeviceError.
extern Kernel<Tensor(const Tensor& x, int dim, const Tensor& index, const Scatter& how)> scatter;

// The coordinates of the nonzero elements, in row-major order: int64 [count, dimensions of x]. NaN is nonzero.
// Synchronizes with the device.
extern Kernel<Tensor(const Tensor& x)> nonzero;

}  // namespace brigade::kernels
