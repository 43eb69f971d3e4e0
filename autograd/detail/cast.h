// A recorded cast under a name of its own.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::autograd::detail {

// x in another dtype, as Tensor::to; `op` is what the tape and the graph call it. x itself where it
// has the dtype.
Tensor cast(const char* op, const Tensor& x, DType dtype, SourceLocation where);

// Whether autocast may cast it: a floating tensor, but for float64.
inline bool may_be_cast(const Tensor& x) {
  return x.defined() && is_floating_point(x.dtype()) && x.dtype() != kFloat64;
}

}  // namespace brigade::autograd::detail
