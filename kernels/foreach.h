// Operations on many gradients at once: on a GPU one launch takes about 190 tensors. (Optimizer steps over many
// parameters: optimizer.h.)
//
// The tensors of a call are floating, of one dtype, on one device (DTypeError, DeviceError), of any shapes and strides.
#pragma once

#include <brigade/kernels/kernel.h>

#include <span>

namespace brigade::kernels {

// In place: grads[i] *= inv_scale, and found_inf = 1 when any element of any gradient was infinite or NaN on entry;
// else found_inf is unchanged. An inv_scale of 1 only checks. Both are float32 with one element, on the gradients'
// device, without a host synchronization. As torch._amp_foreach_non_finite_check_and_unscale_.
extern Kernel<void(std::span<const Tensor> grads, const Tensor& inv_scale, const Tensor& found_inf)> foreach_unscale;

// The per-tensor term of foreach_norm. The total norm is the sqrt of the sum of all terms, their sum, or the largest.
enum class NormTerm { SumOfSquares, SumOfAbs, MaxAbs };
// out[i] = the term of tensors[i]; 0 for an empty tensor. NaNs propagate. `out`: float64 [tensors.size()], contiguous,
// on the same device (ShapeError, DTypeError). Additions are in double and in a fixed order, so results are bitwise
// reproducible.
extern Kernel<void(std::span<const Tensor> tensors, NormTerm term, const Tensor& out)> foreach_norm;

// In place: tensors[i] *= factor, times the one element of `by` (float32 or float64, on the same device) if defined.
// The factor is rounded to the compute_type, each product is rounded once.
extern Kernel<void(std::span<const Tensor> tensors, double factor, const Tensor& by)> foreach_scale;

// In place: tensors[i] = min(max(tensors[i], -bound), bound), bound >= 0, rounded to their dtype. NaNs propagate.
extern Kernel<void(std::span<const Tensor> tensors, double bound)> foreach_clip;

}  // namespace brigade::kernels
