// Functions of elements beyond arithmetic.h: elementary functions, powers, functions of three tensors, clamp, choices
// and truth values.
#pragma once

#include <brigade/core/tensor.h>

#include <optional>
#include <type_traits>

namespace brigade {

// --- Elementary functions, element by element; the result has the shape and dtype of x, float32 for integers and
// bools. (exp, log, sqrt and the like are in arithmetic.h.)

// 1 / sqrt(x)
Tensor rsqrt(const Tensor& x, SourceLocation where = SourceLocation::current());
// Angles are in radians.
Tensor sin(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor cos(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor tan(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor asin(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor acos(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor atan(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor sinh(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor cosh(const Tensor& x, SourceLocation where = SourceLocation::current());
// log(1 + x) and exp(x) - 1, precise near 0.
Tensor log1p(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor expm1(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor log2(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor log10(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor exp2(const Tensor& x, SourceLocation where = SourceLocation::current());
// The error function, and one minus it.
Tensor erf(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor erfc(const Tensor& x, SourceLocation where = SourceLocation::current());

// Rounding to whole numbers. Integers are allowed (and copied). The gradient is zero everywhere, as in PyTorch.
Tensor floor(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor ceil(const Tensor& x, SourceLocation where = SourceLocation::current());
// Rounds to the nearest; ties go to the even number.
Tensor round(const Tensor& x, SourceLocation where = SourceLocation::current());
// Rounds towards 0.
Tensor trunc(const Tensor& x, SourceLocation where = SourceLocation::current());

// --- Powers, and other functions of two numbers, element by element with broadcasting. Two tensors are computed in
// their common dtype. With a number, an integer tensor keeps its dtype if the number is an integer and gives float32 if
// it is floating. Not for bool. They throw ShapeError, DTypeError.

// base^exponent; 0^0 is 1. An exponent of 0 has a gradient of 0, also at a base of 0; at a base of 0 the gradient of an
// exponent >= 0 is 0. Throws ValueError for integers with a negative integer exponent (pow(i, -1.0) gives float32).
Tensor pow(const Tensor& base, const Tensor& exponent, SourceLocation where = SourceLocation::current());
Tensor pow(const Tensor& base, Scalar exponent, SourceLocation where = SourceLocation::current());
Tensor pow(Scalar base, const Tensor& exponent, SourceLocation where = SourceLocation::current());

// The angle of the point (x, y), -pi .. pi. Integers give float32. Gradient 0 at the origin.
Tensor atan2(const Tensor& y, const Tensor& x, SourceLocation where = SourceLocation::current());

// The rest of a after division by b: remainder has the sign of b (quotients are rounded down), fmod that of a (rounded
// towards 0). Integers divided by 0 give 0.
Tensor remainder(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor remainder(const Tensor& a, Scalar b, SourceLocation where = SourceLocation::current());
Tensor fmod(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor fmod(const Tensor& a, Scalar b, SourceLocation where = SourceLocation::current());

inline Tensor operator%(TensorArg a, const Tensor& b) { return remainder(a.tensor, b, a.where); }
inline Tensor operator%(TensorArg a, Scalar b) { return remainder(a.tensor, b, a.where); }

// --- Elementwise operations on three tensors (addcmul, addcdiv, lerp), broadcast, in one pass: floating dtypes,
// computed in their common dtype. They throw ShapeError and DTypeError.

// x + value * a * b
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value = 1,
               SourceLocation where = SourceLocation::current());
// x + value * a / b
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, double value = 1,
               SourceLocation where = SourceLocation::current());
// start + weight (end - start)
Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight,
            SourceLocation where = SourceLocation::current());
Tensor lerp(const Tensor& start, const Tensor& end, double weight, SourceLocation where = SourceLocation::current());

// --- Elementwise clamp to [min, max]. Floating dtypes and integers; throws DTypeError for bool.

// min(max(x, min), max), so that `max` wins if min > max; a NaN stays NaN. An integer x keeps its dtype with integer
// bounds and gives float32 with a floating bound. The gradient is 0 outside the bounds and at them, as in PyTorch
// (2.15). Throws ValueError when neither bound is given.
Tensor clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max = std::nullopt,
             SourceLocation where = SourceLocation::current());
Tensor clamp_min(const Tensor& x, Scalar min, SourceLocation where = SourceLocation::current());
Tensor clamp_max(const Tensor& x, Scalar max, SourceLocation where = SourceLocation::current());

// Tensor bounds: broadcast, computed in the common dtype; one of them may be undefined. Where x equals a bound, both
// get half of the gradient (x gets all of it if the bounds are equal), as with `maximum`.
Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max = {},
             SourceLocation where = SourceLocation::current());
Tensor clamp_min(const Tensor& x, const Tensor& min, SourceLocation where = SourceLocation::current());
Tensor clamp_max(const Tensor& x, const Tensor& max, SourceLocation where = SourceLocation::current());

// --- Choices between two operands, element by element. Every dtype; gradients go to the side that was chosen.
//
// They throw DTypeError unless the condition is bool, ShapeError when shapes do not broadcast.

// a where `condition` holds, b elsewhere; all three broadcast. Two tensors give their common dtype; a tensor and a
// number give that of the tensor (float32 for an integer tensor and a floating number, int64 for a bool tensor and an
// integer).
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b,
             SourceLocation where = SourceLocation::current());
Tensor where(const Tensor& condition, const Tensor& a, Scalar b, SourceLocation where = SourceLocation::current());
Tensor where(const Tensor& condition, Scalar a, const Tensor& b, SourceLocation where = SourceLocation::current());
// float32, int64 or bool: the widest kind among the two numbers.
Tensor where(const Tensor& condition, Scalar a, Scalar b, SourceLocation where = SourceLocation::current());

// x with `value` where `mask` holds; both broadcast. Keeps the dtype of x. Throws ValueError for an
// integer x and a value that it cannot hold.
Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value, SourceLocation where = SourceLocation::current());

// --- Truth values, element by element: bool results, no derivative. Every dtype; a number is true when it is not 0, so
// a NaN is true. Tensors broadcast.

Tensor logical_and(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor logical_or(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor logical_xor(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor logical_not(const Tensor& x, SourceLocation where = SourceLocation::current());

Tensor isnan(const Tensor& x, SourceLocation where = SourceLocation::current());
// Infinity of either sign.
Tensor isinf(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor isfinite(const Tensor& x, SourceLocation where = SourceLocation::current());

// Whether |a - b| <= atol + rtol * |b| for each pair of elements. An infinity is close only to itself. A NaN is close
// to another NaN with equal_nan, and otherwise to nothing.
struct CloseOptions {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
};
Tensor isclose(const Tensor& a, const Tensor& b, const CloseOptions& options = {},
               SourceLocation where = SourceLocation::current());
// Whether isclose() holds for all elements. Throws ShapeError when the shapes do not broadcast.
bool allclose(const Tensor& a, const Tensor& b, const CloseOptions& options = {},
              SourceLocation where = SourceLocation::current());
template <class Number>  // so that {} stands for options
requires std::is_arithmetic_v<Number>
bool allclose(const Tensor& a, const Tensor& b, Number rtol, double atol = 1e-8,
              SourceLocation where = SourceLocation::current()) {
  return allclose(a, b, CloseOptions{.rtol = static_cast<double>(rtol), .atol = atol}, where);
}
// Whether shapes and elements are equal; a NaN is equal to nothing.
bool equal(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());

}  // namespace brigade
