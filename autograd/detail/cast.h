// A recorded cast under a name of its own.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::autograd::detail {

// x in another dtype, as Tensor::to; `op` is what the tape and the graph call it. x itself where it
// has the dtype.
Tensor cast(const char* op, const Tensor& x, DType dtype, SourceLocation where);

}  // namespace brigade::autograd::detail
