// A choice between two operands, element by element.
//
// Every dtype: elements are moved, not computed with.
#pragma once

#include <brigade/kernels/kernel.h>

#include <type_traits>

namespace brigade::kernels {

// One side of a choice: a tensor, or a number where the tensor is undefined.
struct Choice {
  Tensor tensor;
  Scalar number = 0;

  Choice(const Tensor& t) : tensor(t) {}
  Choice(Scalar n) : number(n) {}
  template <class T>
  requires std::is_arithmetic_v<T> Choice(T n) : number(n) {}
};

// a where `condition` (bool) holds, b elsewhere, all three broadcast. Two tensors give
// result_type of both; two numbers the wider of float32, int64 and bool that they are. Throws
// DTypeError, ShapeError, DeviceError.
extern Kernel<Tensor(const Tensor& condition, const Choice& a, const Choice& b)> where;

}  // namespace brigade::kernels
