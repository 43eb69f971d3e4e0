// The rule of loss_scale.h and the check of its arguments, on every device.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/loss_scale.h>

#include <cmath>

namespace brigade::kernels {

struct LossScaleUpdate {
  float* scale;
  float* inverse;
  int64_t* growth_tracker;
  const float* found_inf;
  LossScaleRule rule;

  BRIGADE_HOST_DEVICE void operator()() const {
    if (*found_inf != 0) {
      *scale = static_cast<float>(*scale * rule.backoff_factor);
      *growth_tracker = 0;
    } else if (*growth_tracker + 1 == rule.growth_interval) {
      const auto grown = static_cast<float>(*scale * rule.growth_factor);
      if (std::isfinite(grown)) *scale = grown;
      *growth_tracker = 0;
    } else {
      ++*growth_tracker;
    }
    *inverse = static_cast<float>(1.0 / static_cast<double>(*scale));
  }
};

// Checks them.
LossScaleUpdate loss_scale_update(const Tensor& scale, const Tensor& inverse, const Tensor& growth_tracker,
                                  const Tensor& found_inf, const LossScaleRule& rule);

}  // namespace brigade::kernels
