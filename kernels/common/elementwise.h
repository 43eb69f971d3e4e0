// Device-independent parts of the elementwise kernels: checks, dtypes and allocation of results.
#pragma once

#include <brigade/kernels/elementwise.h>

namespace brigade::kernels {

// Operands in the dtype they are computed in (not broadcast), and the result, not filled.
struct Operands {
  Tensor x, y, out;
};
// Throws DTypeError if one of the two is bool.
void check_difference(DType a, DType b);
// For a op b and comparisons. Throw DeviceError, DTypeError, ShapeError.
Operands prepare_binary(const Tensor& a, const Tensor& b, BinaryOp op);
Operands prepare_compare(const Tensor& a, const Tensor& b);
// For a op scalar; y is undefined.
Operands prepare_binary_scalar(const Tensor& a, Scalar scalar, BinaryOp op);

// For bool tensors: Square gives int64, Sign a copy. Throws DTypeError for the other ops.
Tensor unary_of_bool(const Tensor& x, UnaryOp op);

// Throws ShapeError unless x broadcasts to the shape of out.
void check_fits(const Tensor& out, const Tensor& x, const char* what);
// Throws ShapeError unless the gradient has the shape and dtype of x.
void check_gradient_like(const Tensor& grad, const Tensor& x, const char* what);
// out = x, cast and broadcast, for tensors on two devices.
void copy_between_devices(const Tensor& out, const Tensor& x);

}  // namespace brigade::kernels
