// The dtype that operands of several dtypes are computed in: PyTorch's three categories.
#pragma once

#include <brigade/core/tensor.h>

#include <functional>
#include <initializer_list>

namespace brigade::kernels {

// Tensors with dimensions come first; a tensor without dimensions takes part only where it is of a
// higher kind (bool < integers < floats) than all of them; a number (a C++ argument, not a tensor)
// only where it does not fit into the kind. So float32 [3] times float64 [] is float32, and int64
// [3] times float64 [] is float64. Undefined tensors do not count.
DType result_type(std::initializer_list<std::reference_wrapper<const Tensor>> operands);
// Of a tensor and a number: a floating number makes a tensor of integers float32, an integer a bool
// tensor int64. The number's value has no part in it.
DType result_type(const Tensor& x, Scalar number);

// Throws DTypeError "result type Float can't be cast to the desired output type Long" where an
// in-place operation would have to cut the fraction off its result, or to make a number a bool.
void check_result_type(const char* op, DType result, const Tensor& self);

}  // namespace brigade::kernels
