// The scale of a loss scaler that is kept in a device's memory: how it grows and falls without the host.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/kernel.h>

#include <cmath>
#include <cstdint>

namespace brigade::kernels {

struct LossScaleRule {
  double growth_factor, backoff_factor;
  int64_t growth_interval;  // iterations in a row in which nothing was found, until the scale grows
};

struct LossScale {
  float scale;
  int64_t growth_tracker;  // iterations since it last changed
};

// After an iteration. Where an infinity was found, scale *= backoff_factor, and growth_tracker = 0. Else growth_tracker
// += 1, and where that reaches growth_interval, scale *= growth_factor unless that would be infinite, and growth_tracker
// = 0. Products in double, kept as float32, as torch._amp_update_scale_.
BRIGADE_HOST_DEVICE inline LossScale next_loss_scale(LossScale now, bool found_inf, const LossScaleRule& rule) {
  if (found_inf) return {static_cast<float>(now.scale * rule.backoff_factor), 0};
  if (now.growth_tracker + 1 != rule.growth_interval) return {now.scale, now.growth_tracker + 1};
  const auto grown = static_cast<float>(now.scale * rule.growth_factor);
  return {std::isfinite(grown) ? grown : now.scale, 0};
}

// The same in place, and inverse = 1 / scale. `scale`, `inverse`, `found_inf` (0 for none): float32;
// `growth_tracker`: int64; each of one element, on one device. Throws DTypeError, ShapeError, DeviceError.
extern Kernel<void(const Tensor& scale, const Tensor& inverse, const Tensor& growth_tracker, const Tensor& found_inf,
                   const LossScaleRule& rule)>
    update_loss_scale;

}  // namespace brigade::kernels
