// Checks of numbers that a kernel takes as one-element tensors, because their values are in device memory.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::kernels {

// `number` must be on the device of `beside` (if defined). `what`: the kernel, `role`: the argument. Throws ShapeError,
// DeviceError.
void check_number(const char* what, const char* role, const Tensor& number, const Tensor& beside);
// Also throws DTypeError.
void check_number(const char* what, const char* role, const Tensor& number, const Tensor& beside, DType dtype);

}  // namespace brigade::kernels
