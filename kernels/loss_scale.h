// The scale of a loss scaler that is kept in a device's memory: how it grows and falls without the host.
#pragma once

#include <brigade/kernels/kernel.h>

#include <cstdint>

namespace brigade::kernels {

struct LossScaleRule {
  double growth_factor, backoff_factor;
  int64_t growth_interval;  // iterations in a row in which nothing was found, until the scale grows
};

// In place. Where found_inf is not 0, scale *= backoff_factor, and growth_tracker = 0. Else growth_tracker += 1, and
// where that reaches growth_interval, scale *= growth_factor unless that would be infinite, and growth_tracker = 0.
// inverse = 1 / scale. Products in double, kept as float32, as torch._amp_update_scale_. `scale`, `inverse`,
// `found_inf`: float32; `growth_tracker`: int64; each of one element, on one device. Throws DTypeError, ShapeError,
// DeviceError.
extern Kernel<void(const Tensor& scale, const Tensor& inverse, const Tensor& growth_tracker, const Tensor& found_inf,
                   const LossScaleRule& rule)>
    update_loss_scale;

}  // namespace brigade::kernels
