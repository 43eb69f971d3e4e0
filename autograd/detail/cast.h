// A recorded cast with its own operation name.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::autograd::detail {

// x in another dtype, like Tensor::to; `op` names the cast on the tape and in the graph. Returns x itself if it already
// has the dtype.
Tensor cast(const char* op, const Tensor& x, DType dtype, SourceLocation where);

// Whether autocast may cast x: any floating dtype except float64.
inline bool may_be_cast(const Tensor& x) {
  return x.defined() && is_floating_point(x.dtype()) && x.dtype() != kFloat64;
}

}  // namespace brigade::autograd::detail
