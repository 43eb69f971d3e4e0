// What adam_clock.h does in memory, and the check of its arguments, on every device.
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

// Checks them.
AdamClockAdvance adam_clock_advance(const Tensor& clock, const Tensor& found_inf, double beta1, double beta2);
// Of an argument of `what`.
void check_adam_clock(const char* what, const Tensor& clock);

}  // namespace brigade::kernels
