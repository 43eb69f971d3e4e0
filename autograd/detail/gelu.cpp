// The derivatives of gelu, operation by operation.
#include <brigade/autograd/detail/gelu.h>

#include <brigade/autograd/detail/algebra.h>
#include <brigade/kernels/common/activation.h>

namespace brigade::autograd::detail {

using namespace algebra;

// d/dx of x Phi(x) is Phi(x) + x phi(x).
Tensor gelu_derivative(const Tensor& x) {
  const Tensor cdf = (erf_of(x * kernels::kSqrtHalf) + 1.0) * 0.5;
  const Tensor pdf = exp_of(square_of(x) * -0.5) * (kernels::kSqrtHalf * std::numbers::inv_sqrtpi);
  return cdf + x * pdf;
}

// With t = tanh(u), u = sqrt(2 / pi) (x + 0.044715 x^3): (1 + t) / 2 + x (1 - t^2) u' / 2
Tensor gelu_tanh_derivative(const Tensor& x) {
  const Tensor squares = square_of(x);
  const Tensor t = tanh_of(x * (squares * kernels::kGeluCubic + 1.0) * kernels::kSqrtTwoOverPi);
  const Tensor inner = (squares * (3 * kernels::kGeluCubic) + 1.0) * kernels::kSqrtTwoOverPi;
  const Tensor rest = x * ((1.0 - square_of(t)) * inner);
  return (t + 1.0 + rest) * 0.5;
}

}  // namespace brigade::autograd::detail
