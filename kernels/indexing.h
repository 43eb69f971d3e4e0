// Elements and rows by index: gather, scatter, nonzero, concatenation, one-hot codes, embedding tables, sort and topk.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// --- Gather and scatter along one dimension by index, and the coordinates of nonzero elements.
//
// Any dtype. Indices are int64 in 0..size-1 along `dim`; IndexError names the position (in row-major order) and value
// of one that is not. On a CUDA device that error is reported late (core/cuda/error.h); until then a bad index
// reads zeros and writes nothing.

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

// --- Concatenation, row selection and one-hot encoding.

// All shapes must be equal except in `dim`; dtypes are promoted. Throws ShapeError naming the first tensor that does
// not fit, DeviceError.
extern Kernel<Tensor(std::span<const Tensor> tensors, int dim)> cat;
// The rows (along dim 0) of x at int64 indices [n]: result [n, ...]. Throws ShapeError, DTypeError, DeviceError, and
// IndexError with the position and value; on a CUDA device that error is reported late (core/cuda/error.h), and
// the row is zeros until then.
extern Kernel<Tensor(const Tensor& x, const Tensor& indices)> index_rows;
// Gradient of index_rows: adds row i of grad to row indices[i] of a zero tensor of `x_sizes`, in
// index order, as embedding_backward does.
Tensor index_rows_backward(const Tensor& grad, const Tensor& indices, const Shape& x_sizes);
// int64 zeros and ones [..., classes] from class indices int64 [...]. Throws DTypeError,
// ValueError, and IndexError as index_rows does; a bad class gives zeros.
extern Kernel<Tensor(const Tensor& indices, int64_t classes)> one_hot;

// --- Embedding lookup: rows of a table, by index.

// weight [rows, width], indices int64 [...] -> [..., width]. Throws ShapeError, DTypeError, DeviceError, and IndexError
// naming the position and value of an index outside 0..rows-1. On a CUDA device that error is reported late
// (core/cuda/error.h), and the row is zeros until then.
extern Kernel<Tensor(const Tensor& weight, const Tensor& indices)> embedding;

struct EmbeddingGrad {
  int64_t rows = 0;
  int64_t padding_idx = -1;  // the row that gets no gradient; -1: none
  Tensor out = {};           // [rows, width], dense, written or added to; undefined: a new one
  bool accumulate = false;
  bool mean_over_positions = false;  // divides the sum of a row by its number of positions
};
// grad [..., width] for indices [...] -> [rows, width]; any dtype except bool; a mean needs a floating dtype. The
// gradients of a row are added in the order of the positions, half types in float32, and rounded once: the bits do not
// depend on the number of threads. A CUDA device splits a row with many positions into parts whose bounds depend on the
// indices alone. Throws as above.
extern Kernel<Tensor(const Tensor& grad, const Tensor& indices, const EmbeddingGrad& options)> embedding_backward;

// --- Sorting along a dimension.
//
// Any dtype. A NaN counts as larger than any number, and -0 as equal to 0, as in PyTorch; sorting is stable, so that
// all devices give the same result.

// Sorted values and their original indices (int64).
struct Sorted {
  Tensor values;
  Tensor indices;
};
extern Kernel<Sorted(const Tensor& x, int dim, bool descending)> sort;
// The first k elements in descending (`largest`) or ascending order, sorted. Throws ValueError for a k outside 0..size.
extern Kernel<Sorted(const Tensor& x, int64_t k, int dim, bool largest)> topk;

}  // namespace brigade::kernels
