// Activations and their gradients on the CPU: vectorized loops for float32, scalar loops for float64.
#include <brigade/kernels/activation.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/activation.h>
#include <brigade/kernels/cpu/detail/stretches.h>
#include <brigade/kernels/cpu/vector/elementwise.h>

namespace brigade::kernels {
namespace {

// `cost`: the work per element, relative to a cheap element.
template <class F>
Tensor map(const char* what, const Tensor& x, int64_t cost, F f) {
  const ActivationFunction any = f;
  return cpu::map(
      what, x, cost, [&](const cpu::FloatArrays& arrays) { cpu::activation_floats(any, arrays); },
      cpu::loop1<double>(f));
}
// f(grad, x), or f(grad, y)
template <class F>
Tensor map_backward(const char* what, const Tensor& grad, const Tensor& x, int64_t cost, F f) {
  const ActivationFunction any = f;
  return cpu::map_backward(
      what, grad, x, cost, [&](const cpu::FloatArrays& arrays) { cpu::activation_floats(any, arrays); },
      cpu::loop2<double>(f));
}

// NaNs propagate, as in PyTorch.
Tensor relu_cpu(const Tensor& x) {
  if (cpu::is_few(x)) {
    const Tensor y = empty(x.sizes(), kFloat32);
    const auto* const in = static_cast<const float*>(x.raw_data());
    auto* const out = static_cast<float*>(y.raw_data());
    for (int64_t i = 0; i < x.numel(); ++i)
      out[i] = in[i] < 0 ? 0.0F : in[i];
    return y;
  }
  return map("relu", x, 1, Relu{});
}
Tensor relu_backward_cpu(const Tensor& grad, const Tensor& y) {
  if (cpu::is_few(y) && cpu::is_few(grad) && grad.sizes() == y.sizes()) {
    const Tensor result = empty(y.sizes(), kFloat32);
    const auto* const slope = static_cast<const float*>(grad.raw_data());
    const auto* const at = static_cast<const float*>(y.raw_data());
    auto* const out = static_cast<float*>(result.raw_data());
    for (int64_t i = 0; i < y.numel(); ++i)
      out[i] = at[i] <= 0 ? 0.0F : slope[i];
    return result;
  }
  return map_backward("relu backward", grad, y, 1, ReluBackward{});
}

Tensor leaky_relu_cpu(const Tensor& x, double slope) { return map("leaky_relu", x, 1, LeakyRelu{slope}); }
Tensor leaky_relu_backward_cpu(const Tensor& grad, const Tensor& x, double slope) {
  return map_backward("leaky_relu backward", grad, x, 1, LeakyReluBackward{slope});
}

Tensor gelu_cpu(const Tensor& x, bool tanh_approximation) {
  return tanh_approximation ? map("gelu", x, 8, GeluTanh{}) : map("gelu", x, 8, Gelu{});
}
Tensor gelu_backward_cpu(const Tensor& grad, const Tensor& x, bool tanh_approximation) {
  return tanh_approximation ? map_backward("gelu backward", grad, x, 8, GeluTanhBackward{})
                            : map_backward("gelu backward", grad, x, 8, GeluBackward{});
}

Tensor tanh_cpu(const Tensor& x) { return map("tanh", x, 8, Tanh{}); }
Tensor tanh_backward_cpu(const Tensor& grad, const Tensor& y) {
  return map_backward("tanh backward", grad, y, 1, TanhBackward{});
}

Tensor sigmoid_cpu(const Tensor& x) { return map("sigmoid", x, 8, Sigmoid{}); }
Tensor sigmoid_backward_cpu(const Tensor& grad, const Tensor& y) {
  return map_backward("sigmoid backward", grad, y, 1, SigmoidBackward{});
}

Tensor silu_cpu(const Tensor& x) { return map("silu", x, 8, Silu{}); }
Tensor silu_backward_cpu(const Tensor& grad, const Tensor& x) {
  return map_backward("silu backward", grad, x, 8, SiluBackward{});
}

}  // namespace

constinit Kernel<Tensor(const Tensor&)> relu("relu", &relu_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&)> relu_backward("relu_backward", &relu_backward_cpu);
constinit Kernel<Tensor(const Tensor&, double)> leaky_relu("leaky_relu", &leaky_relu_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, double)> leaky_relu_backward("leaky_relu_backward",
                                                                                   &leaky_relu_backward_cpu);
constinit Kernel<Tensor(const Tensor&, bool)> gelu("gelu", &gelu_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, bool)> gelu_backward("gelu_backward", &gelu_backward_cpu);
constinit Kernel<Tensor(const Tensor&)> tanh("tanh", &tanh_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&)> tanh_backward("tanh_backward", &tanh_backward_cpu);
constinit Kernel<Tensor(const Tensor&)> sigmoid("sigmoid", &sigmoid_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&)> sigmoid_backward("sigmoid_backward", &sigmoid_backward_cpu);
constinit Kernel<Tensor(const Tensor&)> silu("silu", &silu_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&)> silu_backward("silu_backward", &silu_backward_cpu);

}  // namespace brigade::kernels
