// Embedding lookup: rows of a table, by index.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// weight [rows, width], indices int64 [...] -> [..., width]. Throws ShapeError, DTypeError, DeviceError, and IndexError
// naming the position and value of an index outside 0..rows-1. On a CUDA device that error is reported late
// (core/cuda/device_error.h), and the row is zeros until then.
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

}  // namespace brigade::kernels
