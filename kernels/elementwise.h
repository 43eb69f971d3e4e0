// Elementwise operations: arithmetic, comparisons, functions of one to three operands, clamping, selection, fills,
// copies and casts.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/kernel.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <type_traits>

namespace brigade::kernels {

// --- Arithmetic with broadcasting, comparisons, unary functions, fills, copies and casts.
//
// All dtypes unless said. Half types are computed in float and rounded once. Results are contiguous and freshly
// allocated.

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

// --- Elementary functions, element by element. Results are contiguous; half types are computed in
// float and rounded once.

enum class Function : uint8_t {
  Rsqrt,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Log1p,
  Expm1,
  Log2,
  Log10,
  Exp2,
  Erf,
  Erfc,
  // Rounding: down, up, to nearest (ties to even), towards 0.
  Floor,
  Ceil,
  Round,
  Trunc,
};
inline constexpr int kFunctions = 20;

// Floating dtypes. In float32 the CPU error is at most 3 ULP.
extern Kernel<Tensor(const Tensor& x, Function f)> function;

// --- Elementwise functions of two numbers other than arithmetic. Half types are computed in float and rounded once.

enum class BinaryFunction : uint8_t {
  Pow,        // x^y; 0^0 is 1
  Atan2,      // the angle of the point (y, x), x being the second operand
  Remainder,  // x - y floor(x / y): has the sign of the divisor
  Fmod,       // x - y trunc(x / y): has the sign of the dividend
};

// f(a, b), broadcast, in result_type({a, b}). For integers (bool is not allowed) Atan2 gives float32, Pow wraps around
// and gives 0 (or +-1) for a negative exponent, and a remainder by 0 is 0. Throws ShapeError, DTypeError, DeviceError.
extern Kernel<Tensor(const Tensor& a, const Tensor& b, BinaryFunction f)> binary_function;
// f(a, number), or f(number, a) when `reversed`; the result dtype follows binary_scalar.
extern Kernel<Tensor(const Tensor& a, Scalar number, BinaryFunction f, bool reversed)> binary_function_scalar;

// --- Elementwise operations on three tensors in one pass: addcmul, addcdiv and lerp. Floating dtypes; half types are
// computed in float and rounded once.

enum class TernaryOp : uint8_t {
  Addcmul,  // a + number * b * c
  Addcdiv,  // a + number * b / c
  Lerp,     // a + c (b - a)
};

// All three broadcast, in their common dtype; `number` is not used by Lerp. Throws ShapeError,
// DTypeError, DeviceError.
extern Kernel<Tensor(const Tensor& a, const Tensor& b, const Tensor& c, TernaryOp op, double number)> ternary;
// a + weight (b - a)
extern Kernel<Tensor(const Tensor& a, const Tensor& b, double weight)> lerp;

// --- Clamps numbers to two bounds, element by element.

struct Borders {
  std::optional<Scalar> lower, upper;
};

// min(max(x, lower), upper); a NaN in x or as a bound propagates. Integers stay integers with integer bounds, and give
// float32 with a floating bound. Throws DTypeError for bool.
extern Kernel<Tensor(const Tensor& x, const Borders& borders)> clamp;
// grad where lower < x < upper, 0 elsewhere (also at the bounds). Floating dtypes.
extern Kernel<Tensor(const Tensor& grad, const Tensor& x, const Borders& borders)> clamp_backward;

// --- Elementwise selection between two operands.
//
// Any dtype: elements are only copied.

// One operand of where: a tensor, or a number if the tensor is undefined.
struct Choice {
  Tensor tensor;
  Scalar number = 0;

  Choice(const Tensor& t) : tensor(t) {}
  Choice(Scalar n) : number(n) {}
  template <class T>
  requires std::is_arithmetic_v<T> Choice(T n) : number(n) {}
};

// a where `condition` (bool) holds, b elsewhere, all three broadcast. Two tensors give result_type of both; two numbers
// give the wider of their dtypes (float32, int64 or bool). Throws DTypeError, ShapeError, DeviceError.
extern Kernel<Tensor(const Tensor& condition, const Choice& a, const Choice& b)> where;

// --- The lower or upper triangle of matrices.

enum class Triangle : uint8_t { Lower, Upper };

// x [.., rows, columns] with zeros above (Lower) or below (Upper) the diagonal (i, i + diagonal);
// any dtype, a dense copy. Throws ShapeError for fewer than two dimensions.
extern Kernel<Tensor(const Tensor& x, Triangle part, int64_t diagonal)> triangle;

// --- Type promotion of operands with different dtypes, with PyTorch's three categories.

// Tensors with dimensions come first; a tensor without dimensions takes part only if its category (bool < integers <
// floats) is higher than all of theirs; a number (a C++ argument, not a tensor) only if it does not fit into their
// category. So float32 [3] times float64 [] is float32, and int64 [3] times float64 [] is float64. Undefined tensors do
// not count.
DType result_type(std::initializer_list<std::reference_wrapper<const Tensor>> operands);
// The result dtype for a tensor and a number: an integer tensor with a floating number gives float32, a bool tensor
// with an integer gives int64. The number's value does not matter.
DType result_type(const Tensor& x, Scalar number);

// Throws DTypeError "result type Float can't be cast to the desired output type Long" if an in-place operation would
// have to truncate its result to an integer, or convert a number to bool.
void check_result_type(const char* op, DType result, const Tensor& self);

}  // namespace brigade::kernels
