// Indices as kernels take them.
#pragma once

#include <brigade/kernels/elementwise.h>

namespace brigade::autograd::detail {

// int32 as int64; anything else itself, for the kernel to judge.
inline Tensor as_indices(const Tensor& index) {
  return index.defined() && index.dtype() == kInt32 ? kernels::cast(index, kInt64) : index;
}

}  // namespace brigade::autograd::detail
