// Elementwise operations on three tensors in one pass: addcmul, addcdiv and lerp. Floating dtypes; half types are
// computed in float and rounded once.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

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

}  // namespace brigade::kernels
