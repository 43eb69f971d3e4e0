// Device-independent parts of convolution: checks, sizes, allocation of results.
#pragma once

#include <brigade/kernels/conv.h>

namespace brigade::kernels {

struct ConvShape {
  int64_t batch, channels, height, width;
  int64_t out_channels, kernel_h, kernel_w;
  int64_t out_h, out_w;
  Conv2dParams params;

  Shape x_sizes() const { return {batch, channels, height, width}; }
  Shape weight_sizes() const { return {out_channels, channels / params.groups, kernel_h, kernel_w}; }
  Shape y_sizes() const { return {batch, out_channels, out_h, out_w}; }
  auto operator<=>(const ConvShape&) const = default;
};

struct ConvPlan {
  ConvShape shape;
  Tensor result;  // contiguous: y, dx or dweight
  bool accumulate = false;
  bool done = false;  // a tensor is empty: the result is already final (zeros, or its old value)
};
// Throw DTypeError, DeviceError, ShapeError, ValueError.
ConvPlan prepare_conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dParams& params);
ConvPlan prepare_conv2d_backward_input(const Tensor& grad, const Tensor& weight, const Tensor& bias,
                                       const Shape& x_sizes, const Conv2dParams& params);
ConvPlan prepare_conv2d_backward_weight(const Tensor& grad, const Tensor& x, const Shape& weight_sizes,
                                        const Conv2dParams& params, const Tensor& out, bool accumulate);

// y += bias, one number per channel.
void add_channel_bias(const Tensor& y, const Tensor& bias);

}  // namespace brigade::kernels
