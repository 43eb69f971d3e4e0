// What joining tensors shares on every device.
#pragma once

#include <brigade/kernels/concat.h>

namespace brigade::kernels {

// The result of cat, not filled. Throws ValueError, ShapeError, DeviceError.
Tensor prepare_cat(std::span<const Tensor> tensors, int dim);

}  // namespace brigade::kernels
