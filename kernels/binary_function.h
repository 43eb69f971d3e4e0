// Elementwise functions of two numbers other than arithmetic. Half types are computed in float and rounded once.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

enum class BinaryFunction : uint8_t {
  Pow,        // x^y; 0^0 is 1
  Atan2,      // the angle of the point (y, x), x being the second operand
  Remainder,  // x - y floor(x / y): has the sign of the divisor
  Fmod,       // x - y trunc(x / y): has the sign of the dividend
};

// f(a, b), broadcast, in result_type({a, b}). For integers (bool is not allowed) Atan2 gives float32, Pow wraps around
// and gives 0 (or +-1) for a negative exponent, and a remainder by 0 is 0. Throws ShapeError, DTypeError, DeviceError.
extern Kernel<Tensor(const Tensor& a, const Tensor& b, BinaryFunction f)> binary_function;
// f(a, number), or f(number, a) when `reversed`; the result dtype follows binary_scalar (elementwise.h).
extern Kernel<Tensor(const Tensor& a, Scalar number, BinaryFunction f, bool reversed)> binary_function_scalar;

}  // namespace brigade::kernels
