// Joining and cutting along a dimension.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// All shapes equal but for `dim`; dtypes promoted. Throws ShapeError that names the first that does not fit.
extern Kernel<Tensor(std::span<const Tensor> tensors, int dim)> cat;
// The rows (along dim 0) of x at int64 indices [n]: result [n, ...]. Throws IndexError with the position and value.
extern Kernel<Tensor(const Tensor& x, const Tensor& indices)> index_rows;
// Gradient of index_rows: adds row i of grad to row indices[i] of a zero tensor of `x_sizes`, in index order.
extern Kernel<Tensor(const Tensor& grad, const Tensor& indices, const Shape& x_sizes)> index_rows_backward;

}  // namespace brigade::kernels
