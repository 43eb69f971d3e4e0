// 2-d convolution (cross-correlation).
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/conv.h>

namespace brigade {

using Conv2dParams = kernels::Conv2dParams;

// x [N, C, H, W], weight [out, C / groups, kh, kw], bias [out] (may be undefined): [N, out, H', W'] with
// H' = (H + 2 * padding - dilation * (kh - 1) - 1) / stride + 1. One floating dtype. Throws ShapeError, ValueError,
// DTypeError.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dParams& params = {},
              SourceLocation where = SourceLocation::current());

}  // namespace brigade
