// Powers, and other functions of two numbers, element by element with broadcasting. Two tensors are computed in their
// common dtype. With a number, an integer tensor keeps its dtype if the number is an integer and gives float32 if it is
// floating. Not for bool. They throw ShapeError, DTypeError.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

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

}  // namespace brigade
