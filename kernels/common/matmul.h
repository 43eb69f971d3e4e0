// Device-independent parts of the matrix products: checks, sizes, allocation of results, and activations as a separate
// pass.
#pragma once

#include <brigade/kernels/matmul.h>

namespace brigade::kernels {

// A matrix (or a batch) in the form that BLAS libraries take: dense rows with a stride of `row_length` elements,
// possibly to be transposed.
struct MatrixOperand {
  const Tensor* given;
  Tensor copy;  // used instead of `given` if defined
  int64_t row_length;
  bool transposed;

  const Tensor& tensor() const noexcept { return copy.defined() ? copy : *given; }
};
// The operand for the last two dimensions of `x`, which must outlive it. Copies when no stride is 1.
MatrixOperand prepare_operand(const Tensor& x, bool transpose);

struct MatmulPlan {
  Tensor out;  // contiguous [batch..., m, n]
  int64_t m, n, k;
  bool accumulate;
  bool done;  // `out` is empty, or k is 0 and `out` already holds the result
};
// Throws DTypeError, DeviceError, ShapeError.
MatmulPlan prepare_matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options);

struct LinearPlan {
  Tensor rows;  // x as [rows, in]
  Shape sizes;  // of the result
};
// Throws DTypeError, DeviceError, ShapeError.
LinearPlan prepare_linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

// Computes linear_activation from the result of linear, with the activation's own kernel.
LinearActivation activate(Tensor pre, FusedActivation activation, bool keep_pre);

}  // namespace brigade::kernels
