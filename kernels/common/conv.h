// Device-independent parts of convolution, unfold and fold: checks, sizes, allocation of results.
#pragma once

#include <brigade/kernels/conv.h>

namespace brigade::kernels {

// --- Convolution.

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

// --- Unfold and fold.

struct FoldPlan {
  int64_t planes;  // N * C
  int64_t height, width;
  int64_t out_h, out_w;  // windows
  FoldParams params;
  Tensor result;

  int64_t pixels() const { return height * width; }
  // Elements of the columns of one plane.
  int64_t elements() const { return params.kernel_size[0] * params.kernel_size[1] * out_h * out_w; }
};
// Throw ShapeError, ValueError.
FoldPlan prepare_unfold(const Tensor& x, const FoldParams& params);
FoldPlan prepare_fold(const Tensor& columns, const std::array<int64_t, 2>& output_size, const FoldParams& params);

}  // namespace brigade::kernels
