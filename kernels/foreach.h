// What happens to many gradients at once: on a GPU a launch per 190 tensors or so, not one per
// tensor. (Optimizer steps over many parameters: optimizer.h.)
//
// The tensors of a call are floating, of one dtype, on one device (DTypeError, DeviceError), of any
// shapes and strides.
#pragma once

#include <brigade/kernels/kernel.h>

#include <span>

namespace brigade::kernels {

// In place: grads[i] *= inv_scale, and found_inf = 1 when any element of any of them was infinite
// or NaN before; else found_inf stays as it is. An inv_scale of 1 only looks. Both float32 with one
// element, on the gradients' device: nothing waits for the host. As
// torch._amp_foreach_non_finite_check_and_unscale_.
extern Kernel<void(std::span<const Tensor> grads, const Tensor& inv_scale, const Tensor& found_inf)> foreach_unscale;

// What foreach_norm computes of a tensor; the norm of them all is sqrt of the sum, the sum, the
// largest.
enum class NormTerm { SumOfSquares, SumOfAbs, MaxAbs };
// out[i] = the term of tensors[i]; 0 for an empty one; a NaN wins. `out`: float64 [tensors.size()],
// contiguous, on the same device (ShapeError, DTypeError). A fixed order of additions, in double:
// the same bits each time.
extern Kernel<void(std::span<const Tensor> tensors, NormTerm term, const Tensor& out)> foreach_norm;

// In place: tensors[i] *= factor, times the one element of `by` (float32 or float64, on the same
// device) unless that is undefined. The factor is rounded to the compute_type, each product once.
extern Kernel<void(std::span<const Tensor> tensors, double factor, const Tensor& by)> foreach_scale;

// In place: tensors[i] = min(max(tensors[i], -bound), bound), bound >= 0, rounded to their dtype; a
// NaN stays.
extern Kernel<void(std::span<const Tensor> tensors, double bound)> foreach_clip;

}  // namespace brigade::kernels
