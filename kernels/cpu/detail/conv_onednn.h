// Convolution through oneDNN primitives, cached by shape.
#pragma once

#include <brigade/kernels/common/conv.h>

namespace brigade::kernels::cpu {

// float32 wherever oneDNN is there, bfloat16 where the processor has instructions for it as well.
bool onednn_conv_takes(DType dtype);
// How many passes the calling thread has run in that dtype: tells a test which way one went.
int64_t onednn_conv_passes(DType dtype);

// Contiguous NCHW, all of one dtype but `bias` (may be undefined) and `dweight`, which are float32
// always. bfloat16 is added up in float32 and rounded once, after the bias was added. Each returns
// false, with nothing done, when oneDNN does not take the dtype or has no fast primitive for the
// shape.
bool onednn_conv_forward(const ConvShape& shape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                         const Tensor& y);
bool onednn_conv_backward_input(const ConvShape& shape, const Tensor& grad, const Tensor& weight, const Tensor& dx);
bool onednn_conv_backward_weight(const ConvShape& shape, const Tensor& grad, const Tensor& x, const Tensor& dweight,
                                 bool accumulate);

}  // namespace brigade::kernels::cpu
