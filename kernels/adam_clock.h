// The steps of Adam, counted in a device's memory: what the host cannot count when a captured step is replayed.
#pragma once

#include <brigade/kernels/kernel.h>

#include <cstdint>

namespace brigade::kernels {

// {steps, 1 - beta1^steps, sqrt(1 - beta2^steps)}: float64, contiguous, 3 elements.
Tensor make_adam_clock(int64_t steps, Device device);

// One step more, and the corrections that go with it; nothing where found_inf is not 0 (float32, one element, on the
// clock's device; undefined: 0). To be called before the step that reads it (AdamParams). Throws DTypeError, ShapeError,
// DeviceError.
extern Kernel<void(const Tensor& clock, const Tensor& found_inf, double beta1, double beta2)> advance_adam_clock;

}  // namespace brigade::kernels
