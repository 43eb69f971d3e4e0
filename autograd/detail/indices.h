// Indices in the dtype that kernels require.
#pragma once

#include <brigade/kernels/elementwise.h>

namespace brigade::autograd::detail {

// Casts int32 to int64; returns anything else unchanged, for the kernel to check.
inline Tensor as_indices(const Tensor& index) {
  return index.defined() && index.dtype() == kInt32 ? kernels::cast(index, kInt64) : index;
}

}  // namespace brigade::autograd::detail
