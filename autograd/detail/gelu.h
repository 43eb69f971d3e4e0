// The derivatives of gelu as operations that can be differentiated again.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::autograd::detail {

// Phi(x) + x phi(x)
Tensor gelu_derivative(const Tensor& x);
// The derivative of the tanh approximation.
Tensor gelu_tanh_derivative(const Tensor& x);

}  // namespace brigade::autograd::detail
