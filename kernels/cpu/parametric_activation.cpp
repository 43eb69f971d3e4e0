// Parametric activations on the CPU: vectorized loops for float32, scalar loops for float64.
#include <brigade/kernels/activation.h>

#include <brigade/kernels/common/activation.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/cpu/detail/stretches.h>
#include <brigade/kernels/cpu/vector/elementwise.h>

namespace brigade::kernels {
namespace {

Tensor parametric_activation_cpu(const Tensor& x, Activation kind, const ActivationParams& params) {
  return cpu::map(
      "activation", x, 8,
      [&](const float* const* in, float* out, int64_t n) { cpu::activation_floats(kind, params, in[0], out, n); },
      [&](const double* const* in, double* out, int64_t n) {
        with_activation(kind, [&](auto which) {
          using F = Activate<decltype(which)::value, cpu::Math, double>;
          cpu::loop1<double>(F{Parameters<double>(params)})(in, out, n);
        });
      });
}

Tensor parametric_activation_backward_cpu(const Tensor& grad, const Tensor& x, Activation kind,
                                          const ActivationParams& params) {
  return cpu::map_backward(
      "activation backward", grad, x, 8,
      [&](const float* const* in, float* out, int64_t n) {
        cpu::activation_gradient_floats(kind, params, in[0], in[1], out, n);
      },
      [&](const double* const* in, double* out, int64_t n) {
        with_activation(kind, [&](auto which) {
          using F = ActivateBackward<decltype(which)::value, cpu::Math, double>;
          cpu::loop2<double>(F{Parameters<double>(params)})(in, out, n);
        });
      });
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, Activation, const ActivationParams&)> parametric_activation(
    "parametric_activation", &parametric_activation_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, Activation, const ActivationParams&)>
    parametric_activation_backward("parametric_activation_backward", &parametric_activation_backward_cpu);

}  // namespace brigade::kernels
