// Activations and their derivatives. Floating dtypes. `grad` has the shape of x; results are
// contiguous.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

extern Kernel<Tensor(const Tensor& x)> relu;
// Takes the result y of the forward, not x.
extern Kernel<Tensor(const Tensor& grad, const Tensor& y)> relu_backward;
extern Kernel<Tensor(const Tensor& x, double negative_slope)> leaky_relu;
extern Kernel<Tensor(const Tensor& grad, const Tensor& x, double negative_slope)> leaky_relu_backward;
// x * Phi(x), exact (erf), or the tanh approximation of Hendrycks and Gimpel, arXiv 1606.08415.
extern Kernel<Tensor(const Tensor& x, bool tanh_approximation)> gelu;
extern Kernel<Tensor(const Tensor& grad, const Tensor& x, bool tanh_approximation)> gelu_backward;
extern Kernel<Tensor(const Tensor& x)> tanh;
extern Kernel<Tensor(const Tensor& grad, const Tensor& y)> tanh_backward;
extern Kernel<Tensor(const Tensor& x)> sigmoid;
extern Kernel<Tensor(const Tensor& grad, const Tensor& y)> sigmoid_backward;
// x * sigmoid(x) (Elfwing, Uchibe and Doya, arXiv 1702.03118; "swish").
extern Kernel<Tensor(const Tensor& x)> silu;
extern Kernel<Tensor(const Tensor& grad, const Tensor& x)> silu_backward;

}  // namespace brigade::kernels
