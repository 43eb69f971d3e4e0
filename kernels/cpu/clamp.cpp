// Clamp on the CPU, and its gradient, in loops of float32, float64 or int64.
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cpu/detail/stretches.h>
#include <brigade/kernels/cpu/vector/elementwise.h>

namespace brigade::kernels {
namespace {

Tensor clamp_cpu(const Tensor& x, const Borders& borders) {
  const ClampPlan plan = prepare_clamp(x, borders);
  if (cpu::is_computed_in_float(plan.out.dtype())) {
    const Clamp<float> clamp = clamping<float>(borders);
    cpu::map_floats({&plan.x}, plan.out,
                    [=](const cpu::FloatArrays& arrays) { cpu::clamp_floats(clamp.lower, clamp.upper, arrays); });
  } else if (plan.out.dtype() == kFloat64) {
    cpu::map_doubles({&plan.x}, plan.out, cpu::loop1<double>(clamping<double>(borders)));
  } else {
    // Bounds are saturated to the range of the dtype.
    visit_dtype(plan.out.dtype(), [&]<class T>() {
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        const Clamp<T> clamp = clamping<T>(borders);
        cpu::map_integers({&plan.x}, plan.out, cpu::loop1<int64_t>(Clamp<int64_t>{clamp.lower, clamp.upper}));
      }
    });
  }
  return plan.out;
}

Tensor clamp_backward_cpu(const Tensor& grad, const Tensor& x, const Borders& borders) {
  return cpu::map_backward("clamp backward", grad, x, 1, cpu::loop2<float>(clamping_backward<float>(borders)),
                           cpu::loop2<double>(clamping_backward<double>(borders)));
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Borders&)> clamp("clamp", &clamp_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Borders&)> clamp_backward("clamp_backward",
                                                                                      &clamp_backward_cpu);

}  // namespace brigade::kernels
