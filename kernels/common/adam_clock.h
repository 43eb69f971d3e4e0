// Device-independent parts of adam_clock.h: the update of the clock and the argument checks.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/adam_clock.h>

#include <cmath>

namespace brigade::kernels {

struct AdamClockAdvance {
  double* clock;
  const float* found_inf;  // or null
  double beta1, beta2;

  BRIGADE_HOST_DEVICE void operator()() const {
    if (found_inf && *found_inf != 0) return;
    const double steps = clock[0] + 1;
    clock[0] = steps;
    clock[1] = 1 - std::pow(beta1, steps);
    clock[2] = std::sqrt(1 - std::pow(beta2, steps));
  }
};

// Checks the arguments.
AdamClockAdvance adam_clock_advance(const Tensor& clock, const Tensor& found_inf, double beta1, double beta2);
// Checks a clock that is an argument of the kernel `what`.
void check_adam_clock(const char* what, const Tensor& clock);

}  // namespace brigade::kernels
