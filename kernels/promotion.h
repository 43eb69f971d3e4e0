// Type promotion of operands with different dtypes, with PyTorch's three categories.
#pragma once

#include <brigade/core/tensor.h>

#include <functional>
#include <initializer_list>

namespace brigade::kernels {

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
