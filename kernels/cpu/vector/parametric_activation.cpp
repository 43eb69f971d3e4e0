// The loops of the parametric activations, which the compiler vectorizes by itself.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/parametric_activation.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/common/activation.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/cpu/vector/elementwise.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {
namespace {

template <Activation kind>
void activate(const Activate<kind, Math, float>& f, const float* x, float* out, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    out[i] = f(x[i]);
}
template <Activation kind>
void gradient(const ActivateBackward<kind, Math, float>& f, const float* grad, const float* x, float* out, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    out[i] = f(grad[i], x[i]);
}

}  // namespace

void activation_loop(Activation kind, const ActivationParams& params, const float* x, float* out, int64_t n) {
  with_activation(kind, [&](auto which) HWY_ATTR {
    activate(Activate<decltype(which)::value, Math, float>{Parameters<float>(params)}, x, out, n);
  });
}
void activation_gradient_loop(Activation kind, const ActivationParams& params, const float* grad, const float* x,
                              float* out, int64_t n) {
  with_activation(kind, [&](auto which) HWY_ATTR {
    gradient(ActivateBackward<decltype(which)::value, Math, float>{Parameters<float>(params)}, grad, x, out, n);
  });
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(activation_loop);
HWY_EXPORT(activation_gradient_loop);

void activation_floats(Activation kind, const ActivationParams& params, const float* x, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(activation_loop)(kind, params, x, out, n);
}
void activation_gradient_floats(Activation kind, const ActivationParams& params, const float* grad, const float* x,
                                float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(activation_gradient_loop)(kind, params, grad, x, out, n);
}

}  // namespace brigade::kernels::cpu
#endif
