// What the matrix products of every device share: checks, sizes, room for results, and activations
// in a pass of their own.
#pragma once

#include <brigade/kernels/matmul.h>

namespace brigade::kernels {

// A matrix as libraries take it, or a batch of them: rows that lie `row_length` elements apart,
// dense within, possibly to be transposed.
struct MatrixOperand {
  const Tensor* given;
  Tensor copy;  // in its place, when it is defined
  int64_t row_length;
  bool transposed;

  const Tensor& tensor() const noexcept { return copy.defined() ? copy : *given; }
};
// Of the last two dimensions of `x`, which has to outlive it. Copies when no stride is 1.
MatrixOperand prepare_operand(const Tensor& x, bool transpose);

struct MatmulPlan {
  Tensor out;  // contiguous [batch..., m, n]
  int64_t m, n, k;
  bool accumulate;
  bool done;  // nothing is left to add up: `out` is empty, or k is 0 and it holds the result
};
// Throws DTypeError, DeviceError, ShapeError.
MatmulPlan prepare_matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options);

struct LinearPlan {
  Tensor rows;  // x as [rows, in]
  Shape sizes;  // of the result
};
// Throws DTypeError, DeviceError, ShapeError.
LinearPlan prepare_linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

// The result of linear_activation from that of linear, by the activation's own kernel.
LinearActivation activate(Tensor pre, FusedActivation activation, bool keep_pre);

}  // namespace brigade::kernels
