// A choice between two operands, element by element.
//
// Every dtype: elements are moved, not computed with.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// One side of a choice: a tensor, or a number where the tensor is undefined.
struct Choice {
  Tensor tensor;
  double number = 0;

  Choice(const Tensor& t) : tensor(t) {}
  Choice(double n) : number(n) {}
};

// a where `condition` (bool) holds, b elsewhere, all three broadcast. Two tensors give
// result_type({a, b}); a tensor and a number the tensor's dtype (float32 for an integer tensor and
// a number that is not whole); two numbers float32. Throws DTypeError, ShapeError, DeviceError.
extern Kernel<Tensor(const Tensor& condition, const Choice& a, const Choice& b)> where;

}  // namespace brigade::kernels
