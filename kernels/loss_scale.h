// The update rule of a loss scale in device memory, applied without the host.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/kernel.h>

#include <cmath>
#include <cstdint>

namespace brigade::kernels {

struct LossScaleRule {
  double growth_factor, backoff_factor;
  int64_t growth_interval;  // consecutive iterations without an infinity until the scale grows
};

struct LossScale {
  float scale;
  int64_t growth_tracker;  // iterations since the scale last changed
};

// The loss scale after an iteration. If an infinity was found, scale *= backoff_factor and growth_tracker = 0. Else
// growth_tracker += 1; when it reaches growth_interval, scale *= growth_factor unless that would be infinite, and
// growth_tracker = 0. Products are in double, stored as float32, as in torch._amp_update_scale_.
BRIGADE_HOST_DEVICE inline LossScale next_loss_scale(LossScale now, bool found_inf, const LossScaleRule& rule) {
  if (found_inf) return {static_cast<float>(now.scale * rule.backoff_factor), 0};
  if (now.growth_tracker + 1 != rule.growth_interval) return {now.scale, now.growth_tracker + 1};
  const auto grown = static_cast<float>(now.scale * rule.growth_factor);
  return {std::isfinite(grown) ? grown : now.scale, 0};
}

// Applies next_loss_scale in place, and sets inverse = 1 / scale. `scale`, `inverse`, `found_inf` (0 for none):
// float32; `growth_tracker`: int64; each of one element, on one device. Throws DTypeError, ShapeError, DeviceError.
extern Kernel<void(const Tensor& scale, const Tensor& inverse, const Tensor& growth_tracker, const Tensor& found_inf,
                   const LossScaleRule& rule)>
    update_loss_scale;

}  // namespace brigade::kernels
