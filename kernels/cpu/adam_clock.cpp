// CPU kernels of Adam's clock.
#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/common/optimizer.h>

namespace brigade::kernels {

namespace {

void advance_adam_clock_cpu(const Tensor& clock, const Tensor& found_inf, double beta1, double beta2) {
  adam_clock_advance(clock, found_inf, beta1, beta2)();
}

}  // namespace

constinit Kernel<void(const Tensor&, const Tensor&, double, double)> advance_adam_clock("advance_adam_clock",
                                                                                        &advance_adam_clock_cpu);

}  // namespace brigade::kernels
