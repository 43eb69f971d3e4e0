// The three bilinear maps of a convolution, each differentiable: y of x and weight, the gradient of
// x of that of y and weight, and the gradient of weight of that of y and x. The derivatives of each
// are the other two.
//
// One or two spatial dimensions: weight is [out, in / groups, k...], images are [N, C, size...] or [C, size...]. The
// parameters are those of two dimensions; one is the second, with a first of size 1. Shapes fit: the caller has
// checked.
#pragma once

#include <brigade/autograd/record.h>
#include <brigade/kernels/conv.h>

namespace brigade::autograd::detail {

// Throw as kernels/conv.h. An undefined bias is none.
Tensor convolution(const OpInfo& info, const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const kernels::Conv2dParams& params);
// Plus a bias for each channel of x.
Tensor convolution_backward_input(const OpInfo& info, const Tensor& grad, const Tensor& weight, const Tensor& bias,
                                  const Shape& x_sizes, const kernels::Conv2dParams& params);
Tensor convolution_backward_weight(const OpInfo& info, const Tensor& grad, const Tensor& x, const Shape& weight_sizes,
                                   const kernels::Conv2dParams& params);

}  // namespace brigade::autograd::detail
