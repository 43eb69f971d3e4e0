// The three bilinear maps of a convolution, each differentiable: (x, weight) -> y, (gradient of y, weight) -> gradient
// of x, and (gradient of y, x) -> gradient of weight. The derivatives of each map are the other two.
//
// One or two spatial dimensions: weight is [out, in / groups, k...], images are [N, C, size...] or [C, size...]. The
// parameters are always 2-d; a 1-d convolution uses the second entries, and the first spatial size is 1. The caller has
// checked the shapes.
#pragma once

#include <brigade/autograd/record.h>
#include <brigade/kernels/conv.h>

namespace brigade::autograd::detail {

// They throw the errors of kernels/conv.h. An undefined bias means no bias.
Tensor convolution(const OpInfo& info, const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const kernels::Conv2dParams& params);
// Adds a bias for each channel of x.
Tensor convolution_backward_input(const OpInfo& info, const Tensor& grad, const Tensor& weight, const Tensor& bias,
                                  const Shape& x_sizes, const kernels::Conv2dParams& params);
Tensor convolution_backward_weight(const OpInfo& info, const Tensor& grad, const Tensor& x, const Shape& weight_sizes,
                                   const kernels::Conv2dParams& params);

}  // namespace brigade::autograd::detail
