// What composites of a loss and of a norm need: the reduction of losses, and the type that half types are computed in.
#pragma once

#include <brigade/autograd/ops/reduce.h>
#include <brigade/kernels/loss.h>

namespace brigade::autograd::detail {

inline Tensor reduced(const Tensor& losses, Reduction reduction, SourceLocation where) {
  if (reduction == Reduction::None) return losses;
  return reduction == Reduction::Mean ? mean(losses, {}, false, where) : sum(losses, {}, false, where);
}

// Half types as float32; anything else, and what is undefined, itself.
inline Tensor widened(const Tensor& x) { return x.defined() && is_half(x.dtype()) ? x.to(kFloat32, {}) : x; }
// x itself where it has the dtype.
inline Tensor in_dtype(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : x.to(dtype, {}); }

}  // namespace brigade::autograd::detail
