#include <brigade/kernels/cpu/detail/map.h>
#include <brigade/kernels/cpu/detail/strided_map.h>
#include <brigade/kernels/detail/clamping.h>

namespace brigade::kernels {

namespace {

Tensor clamp_cpu(const Tensor& x, const Borders& borders) {
  const ClampPlan plan = prepare_clamp(x, borders);
  visit_dtype(plan.out.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    if constexpr (!std::is_same_v<T, bool>) {
      cpu::map1<T, T>(plan.x, plan.out, clamping<C>(borders));
    }
  });
  return plan.out;
}

Tensor clamp_backward_cpu(const Tensor& grad, const Tensor& x, const Borders& borders) {
  return cpu::map_backward(grad, x, "clamp backward", 1,
                           [&]<class C>(C g, C v) { return clamping_backward<C>(borders)(g, v); });
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Borders&)> clamp("clamp", &clamp_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Borders&)> clamp_backward("clamp_backward",
                                                                                      &clamp_backward_cpu);

}  // namespace brigade::kernels
