// Concatenation, row selection and one-hot encoding.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// All shapes must be equal except in `dim`; dtypes are promoted. Throws ShapeError naming the first tensor that does
// not fit, DeviceError.
extern Kernel<Tensor(std::span<const Tensor> tensors, int dim)> cat;
// The rows (along dim 0) of x at int64 indices [n]: result [n, ...]. Throws ShapeError, DTypeError, DeviceError, and
// IndexError with the position and value; on a CUDA device that error is reported late (core/cuda/device_error.h), and
// the row is zeros until then.
extern Kernel<Tensor(const Tensor& x, const Tensor& indices)> index_rows;
// Gradient of index_rows: adds row i of grad to row indices[i] of a zero tensor of `x_sizes`, in
// index order, as embedding_backward does.
Tensor index_rows_backward(const Tensor& grad, const Tensor& indices, const Shape& x_sizes);
// int64 zeros and ones [..., classes] from class indices int64 [...]. Throws DTypeError,
// ValueError, and IndexError as index_rows does; a bad class gives zeros.
extern Kernel<Tensor(const Tensor& indices, int64_t classes)> one_hot;

}  // namespace brigade::kernels
