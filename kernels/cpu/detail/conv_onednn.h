// Convolution through oneDNN primitives, cached by shape.
#pragma once

#include <brigade/kernels/common/conv.h>

namespace brigade::kernels::cpu {

// float32, contiguous NCHW. Each returns false, with nothing done, when oneDNN is absent or has no
// primitive for the shape. `bias` may be undefined.
bool onednn_conv_forward(const ConvShape& shape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                         const Tensor& y);
bool onednn_conv_backward_input(const ConvShape& shape, const Tensor& grad, const Tensor& weight, const Tensor& dx);
bool onednn_conv_backward_weight(const ConvShape& shape, const Tensor& grad, const Tensor& x, const Tensor& dweight,
                                 bool accumulate);

}  // namespace brigade::kernels::cpu
