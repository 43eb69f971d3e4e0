// Device-independent parts of loss_scale.h: the update in memory and the argument checks.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/loss_scale.h>

namespace brigade::kernels {

struct LossScaleUpdate {
  float* scale;
  float* inverse;
  int64_t* growth_tracker;
  const float* found_inf;
  LossScaleRule rule;

  BRIGADE_HOST_DEVICE void operator()() const {
    const LossScale next = next_loss_scale({*scale, *growth_tracker}, *found_inf != 0, rule);
    *scale = next.scale;
    *growth_tracker = next.growth_tracker;
    *inverse = static_cast<float>(1.0 / static_cast<double>(next.scale));
  }
};

// Checks the arguments.
LossScaleUpdate loss_scale_update(const Tensor& scale, const Tensor& inverse, const Tensor& growth_tracker,
                                  const Tensor& found_inf, const LossScaleRule& rule);

}  // namespace brigade::kernels
