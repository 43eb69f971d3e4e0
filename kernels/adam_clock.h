// Adam's step counter in device memory: the host cannot count the steps when a captured step is replayed.
#pragma once

#include <brigade/kernels/kernel.h>

#include <cstdint>

namespace brigade::kernels {

// {steps, 1 - beta1^steps, sqrt(1 - beta2^steps)}: float64, contiguous, 3 elements.
Tensor make_adam_clock(int64_t steps, Device device);

// Advances the clock by one step and updates the bias corrections. Does nothing when found_inf (float32, one element,
// on the clock's device; undefined: 0) is not 0. Call it before the optimizer step that reads the clock (AdamParams).
// Throws DTypeError, ShapeError, DeviceError.
extern Kernel<void(const Tensor& clock, const Tensor& found_inf, double beta1, double beta2)> advance_adam_clock;

}  // namespace brigade::kernels
