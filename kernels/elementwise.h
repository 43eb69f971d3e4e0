// Elementwise operations: arithmetic with broadcasting, comparisons, unary functions, fills, copies and casts.
//
// All dtypes unless said. Half types are computed in float and rounded once. Results are contiguous and freshly
// allocated.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

enum class BinaryOp : uint8_t { Add, Sub, Mul, Div, Maximum, Minimum };
enum class CompareOp : uint8_t { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual };
enum class UnaryOp : uint8_t { Neg, Abs, Exp, Log, Sqrt, Reciprocal, Square, Sign };

// a op b, broadcast, in result_type({a, b}). Div of integers gives float32. Throws ShapeError,
// DeviceError.
extern Kernel<Tensor(const Tensor& a, const Tensor& b, BinaryOp op)> binary;
// a op scalar, or scalar op a when `reversed`, in result_type(a, scalar). Div of integers gives
// float32.
extern Kernel<Tensor(const Tensor& a, Scalar scalar, BinaryOp op, bool reversed)> binary_scalar;
// Bool results. Integers are compared with an integer exactly, with a floating number in double.
extern Kernel<Tensor(const Tensor& a, const Tensor& b, CompareOp op)> compare;
extern Kernel<Tensor(const Tensor& a, Scalar scalar, CompareOp op)> compare_scalar;
// Whether `op` is defined for integers as well; the others take floating dtypes only.
constexpr bool takes_integers(UnaryOp op) {
  return op == UnaryOp::Neg || op == UnaryOp::Abs || op == UnaryOp::Square || op == UnaryOp::Sign;
}
// Square of a bool gives int64, Sign of a bool returns it unchanged.
extern Kernel<Tensor(const Tensor& x, UnaryOp op)> unary;

// In place; `out` may be strided; `a` and `x` broadcast to its shape. The caller bumps the version.
// out = x, with a cast when the dtypes differ
extern Kernel<void(const Tensor& out, const Tensor& x)> copy;
extern Kernel<void(const Tensor& out, Scalar value)> fill;
// out += alpha * x
extern Kernel<void(const Tensor& out, const Tensor& x, Scalar alpha)> add_inplace;
// out *= x
extern Kernel<void(const Tensor& out, const Tensor& x)> mul_inplace;
extern Kernel<void(const Tensor& out, Scalar factor)> scale_inplace;

// A contiguous copy (also of a contiguous tensor).
Tensor clone(const Tensor& x);
// `x` itself when it is contiguous, a contiguous copy otherwise.
Tensor contiguous(const Tensor& x);
// `x` itself when it already has the dtype.
Tensor cast(const Tensor& x, DType dtype);

}  // namespace brigade::kernels
