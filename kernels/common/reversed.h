// A view that reverses a dimension with a negative stride.
#pragma once

#include <brigade/core/view.h>

namespace brigade::kernels {

inline Tensor reversed(const Tensor& x, int dim) {
  if (x.numel() == 0) return x;
  Shape strides = x.strides();
  const int64_t last = (x.sizes()[dim] - 1) * strides[dim];
  strides[dim] = -strides[dim];
  return view::as_strided(x, x.sizes(), strides, x.storage_offset() + last);
}

}  // namespace brigade::kernels
