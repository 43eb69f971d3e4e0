// The derivatives of gelu as operations that can be differentiated again.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::autograd::detail {

// Phi(x) + x phi(x)
Tensor gelu_derivative(const Tensor& x);
// Of the approximation by tanh.
Tensor gelu_tanh_derivative(const Tensor& x);

}  // namespace brigade::autograd::detail
