#include <brigade/kernels/parametric_activation.h>

#include <brigade/kernels/cpu/detail/map.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/detail/activation_functors.h>

namespace brigade::kernels {

namespace {

struct Math {
  template <class C>
  static C exp(C x) {
    return cpu::exp(x);
  }
  template <class C>
  static C expm1(C x) {
    return cpu::expm1(x);
  }
  template <class C>
  static C log1p(C x) {
    return cpu::log1p(x);
  }
};

Tensor parametric_activation_cpu(const Tensor& x, Activation kind, const ActivationParams& params) {
  Tensor y;
  with_activation(kind, [&](auto which) {
    y = cpu::map(x, "activation", 8,
                 [&]<class C>(C v) { return Activate<decltype(which)::value, Math, C>{Parameters<C>(params)}(v); });
  });
  return y;
}

Tensor parametric_activation_backward_cpu(const Tensor& grad, const Tensor& x, Activation kind,
                                          const ActivationParams& params) {
  Tensor y;
  with_activation(kind, [&](auto which) {
    y = cpu::map_backward(grad, x, "activation backward", 8, [&]<class C>(C g, C v) {
      return ActivateBackward<decltype(which)::value, Math, C>{Parameters<C>(params)}(g, v);
    });
  });
  return y;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, Activation, const ActivationParams&)> parametric_activation(
    "parametric_activation", &parametric_activation_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, Activation, const ActivationParams&)>
    parametric_activation_backward("parametric_activation_backward", &parametric_activation_backward_cpu);

}  // namespace brigade::kernels
