// The derivatives of gelu, operation by operation.
#include <brigade/autograd/detail/gelu.h>

#include <brigade/autograd/ops/activation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/elementary.h>
#include <brigade/kernels/common/activation.h>

namespace brigade::autograd::detail {

Tensor gelu_derivative(const Tensor& x) {
  const Tensor cdf = mul(add(erf(mul(x, kernels::kSqrtHalf, {}), {}), 1.0, {}), 0.5, {});
  const Tensor pdf = mul(exp(mul(square(x, {}), -0.5, {}), {}), kernels::kSqrtHalf * std::numbers::inv_sqrtpi, {});
  return add(cdf, mul(x, pdf, {}), {});
}

// With t = tanh(u), u = sqrt(2 / pi) (x + 0.044715 x^3): (1 + t) / 2 + x (1 - t^2) u' / 2
Tensor gelu_tanh_derivative(const Tensor& x) {
  const Tensor squares = square(x, {});
  const Tensor t = brigade::tanh(
      mul(mul(x, add(mul(squares, kernels::kGeluCubic, {}), 1.0, {}), {}), kernels::kSqrtTwoOverPi, {}), {});
  const Tensor inner = mul(add(mul(squares, 3 * kernels::kGeluCubic, {}), 1.0, {}), kernels::kSqrtTwoOverPi, {});
  const Tensor rest = mul(x, mul(sub(1.0, square(t, {}), {}), inner, {}), {});
  return mul(add(add(t, 1.0, {}), rest, {}), 0.5, {});
}

}  // namespace brigade::autograd::detail
