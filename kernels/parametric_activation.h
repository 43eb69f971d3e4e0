// Activations with up to three parameters, by kind, and their derivatives. Those without parameters are in
// activation.h, or autograd sets the parameters (selu, relu6). Floating dtypes; results are contiguous.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// p, q, r: the parameters.
enum class Activation : uint8_t {
  Elu,          // q x where x > 0, p q (exp(r x) - 1) elsewhere
  Softplus,     // log(1 + exp(p x)) / p, x itself where p x > q
  Hardtanh,     // x between p and q
  Hardsigmoid,  // (x + 3) / 6 between 0 and 1
  Hardswish,    // x * hardsigmoid(x)
  Mish,         // x tanh(softplus(x))
  Softsign,     // x / (1 + |x|)
  LogSigmoid,   // log(sigmoid(x))
  Softshrink,   // x moved by p towards 0, 0 where |x| <= p
  Hardshrink,   // x, 0 where |x| <= p
};
inline constexpr int kActivations = 10;

struct ActivationParams {
  double p = 0, q = 0, r = 0;
};

extern Kernel<Tensor(const Tensor& x, Activation kind, const ActivationParams& params)> parametric_activation;
extern Kernel<Tensor(const Tensor& grad, const Tensor& x, Activation kind, const ActivationParams& params)>
    parametric_activation_backward;

}  // namespace brigade::kernels
