// Half types are differentiated in float32: the intermediate steps of a formula could overflow, or lose the result to
// rounding, although the gradient itself is representable.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::autograd::detail {

// Casts half types to float32; returns any other tensor, or an undefined one, unchanged.
inline Tensor widened(const Tensor& x) { return x.defined() && is_half(x.dtype()) ? x.to(kFloat32, {}) : x; }
// Casts x to `dtype`; returns x itself if it has the dtype.
inline Tensor in_dtype(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : x.to(dtype, {}); }

// Applies the kernel of a function of real numbers, with integers and bools cast to float32. These have no history that
// the cast would have to keep.
template <class F>
Tensor of_reals(const Tensor& x, F&& kernel) {
  return is_floating_point(x.dtype()) ? kernel(x) : kernel(kernels::cast(x, kFloat32));
}

}  // namespace brigade::autograd::detail
