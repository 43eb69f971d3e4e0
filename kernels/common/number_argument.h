// A number that a kernel takes as a tensor of one element, since the device knows it and the host does not.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::kernels {

// `beside`: what it has to be on one device with; undefined where there is nothing. `what`: the kernel, `role`: the
// argument. Throws ShapeError, DeviceError.
void check_number(const char* what, const char* role, const Tensor& number, const Tensor& beside);
// And DTypeError.
void check_number(const char* what, const char* role, const Tensor& number, const Tensor& beside, DType dtype);

}  // namespace brigade::kernels
