// Elementwise selection between two operands.
//
// Any dtype: elements are only copied.
#pragma once

#include <brigade/kernels/kernel.h>

#include <type_traits>

namespace brigade::kernels {

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

}  // namespace brigade::kernels
