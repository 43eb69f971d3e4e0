// Activations, softmax and dropout, with their derivatives.
#pragma once

#include <brigade/core/random.h>
#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// --- Activations without parameters. Floating dtypes. `grad` has the shape of x; results are contiguous.

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

// --- Activations with up to three parameters, by kind. Those without parameters are above, or autograd sets the
// parameters (selu, relu6). Floating dtypes; results are contiguous.

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

// --- softmax and log_softmax along one dimension, with the row maximum subtracted first. Floating
// dtypes.

extern Kernel<Tensor(const Tensor& x, int dim)> softmax;
// Takes the result y of the forward, not x.
extern Kernel<Tensor(const Tensor& grad, const Tensor& y, int dim)> softmax_backward;
extern Kernel<Tensor(const Tensor& x, int dim)> log_softmax;
extern Kernel<Tensor(const Tensor& grad, const Tensor& y, int dim)> log_softmax_backward;

// --- Dropout whose mask is never stored: forward and backward recompute it from the position in the random stream.

// x * mask / (1 - p); element i is kept when uniform(word i of the stream) >= p. Applied to the gradient, it is its own
// backward.
extern Kernel<Tensor(const Tensor& x, double p, PhiloxState state)> dropout;

// Shared by all devices. Throws ValueError unless 0 <= p <= 1.
void check_dropout_probability(double p);

}  // namespace brigade::kernels
