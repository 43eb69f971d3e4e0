// Device-independent argument checks of the foreach kernels.
#pragma once

#include <brigade/kernels/foreach.h>

#include <span>

namespace brigade::kernels {

// Checks that all tensors are floating, of one dtype, on one device. Throws DTypeError, DeviceError.
void check_alike(const char* what, std::span<const Tensor> tensors);
void check_unscale(std::span<const Tensor> grads, const Tensor& inv_scale, const Tensor& found_inf);
void check_norm(std::span<const Tensor> tensors, const Tensor& out);
void check_clip(std::span<const Tensor> tensors, double bound);
void check_scale(std::span<const Tensor> tensors, const Tensor& by);

}  // namespace brigade::kernels
