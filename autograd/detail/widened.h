// Half types are differentiated in float32: a formula of several steps would leave their range, or
// lose the result to rounding, half way to a gradient that they can hold.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::autograd::detail {

// Half types as float32; anything else, and what is undefined, itself.
inline Tensor widened(const Tensor& x) { return x.defined() && is_half(x.dtype()) ? x.to(kFloat32, {}) : x; }
// x itself where it has the dtype.
inline Tensor in_dtype(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : x.to(dtype, {}); }

// kernel(x) of a function of real numbers, which takes integers and bools as float32. They have no
// history that a cast would have to keep.
template <class F>
Tensor of_reals(const Tensor& x, F&& kernel) {
  return is_floating_point(x.dtype()) ? kernel(x) : kernel(kernels::cast(x, kFloat32));
}

}  // namespace brigade::autograd::detail
