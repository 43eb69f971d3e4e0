// 2-d pooling over [N, C, H, W] or [C, H, W]; floating dtypes. Throws ShapeError when a window does not fit,
// ValueError.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/pool.h>

namespace brigade {

using Pool2dParams = kernels::Pool2dParams;

// The gradient goes to the first largest element of each window.
Tensor max_pool2d(const Tensor& x, const Pool2dParams& params = {}, SourceLocation where = SourceLocation::current());
Tensor avg_pool2d(const Tensor& x, const Pool2dParams& params = {}, SourceLocation where = SourceLocation::current());

}  // namespace brigade
