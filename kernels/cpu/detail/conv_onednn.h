// Convolution through oneDNN primitives, cached by shape.
#pragma once

#include <brigade/kernels/common/conv.h>

namespace brigade::kernels::cpu {

// True for float32 if oneDNN is present, and for bfloat16 if the processor also has instructions for it.
bool onednn_conv_takes(DType dtype);
// The number of passes that the calling thread has run in that dtype (for tests).
int64_t onednn_conv_passes(DType dtype);

// Contiguous NCHW, all of one dtype except `bias` (may be undefined) and `dweight`, which are always float32. bfloat16
// accumulates in float32 and is rounded once, after the bias is added. Each returns false without doing anything if
// oneDNN does not take the dtype or has no fast primitive for the shape.
bool onednn_conv_forward(const ConvShape& shape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                         const Tensor& y);
bool onednn_conv_backward_input(const ConvShape& shape, const Tensor& grad, const Tensor& weight, const Tensor& dx);
bool onednn_conv_backward_weight(const ConvShape& shape, const Tensor& grad, const Tensor& x, const Tensor& dweight,
                                 bool accumulate);

}  // namespace brigade::kernels::cpu
