// Convolution layers.
#pragma once

#include <brigade/autograd/ops/conv.h>
#include <brigade/nn/module.h>

namespace brigade::nn {

struct Conv1dOptions {
  [[no_unique_address]] NamedOnly named = NamedOnly();
  int64_t stride = 1;
  ConvPadding<1> padding = 0;  // zeros at either end, or "same", "valid"
  int64_t dilation = 1;
  int64_t groups = 1;  // divides both channel counts
  bool bias = true;
  DType dtype = DType::Float32;

  // The options of the function.
  operator Conv1dFuncOptions() const {
    return {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups};
  }  // NOLINT(*explicit*)
};
struct Conv2dOptions {
  [[no_unique_address]] NamedOnly named = NamedOnly();
  Size2 stride = 1;
  ConvPadding<2> padding = 0;  // zeros around the image, or "same", "valid"
  Size2 dilation = 1;
  int64_t groups = 1;  // divides both channel counts
  bool bias = true;
  DType dtype = DType::Float32;

  // The options of the function.
  operator Conv2dFuncOptions() const {
    return {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups};
  }  // NOLINT(*explicit*)
};

// [N, in_channels, L] -> [N, out_channels, L'] (or without N); like Conv2d over one dimension.
struct Conv1dImpl : Module {
  using Options = Conv1dOptions;
  Conv1dImpl(int64_t in_channels, int64_t out_channels, int64_t kernel_size, const Conv1dOptions& options = {});
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  int64_t in_channels, out_channels, kernel_size;
  Options options;
  Tensor weight, bias;  // [out, in / groups, k]; bias is undefined without one

 protected:
  std::string extra() const override;
};

// [N, in_channels, H, W] -> [N, out_channels, H', W'] (or without N) with
// H' = (H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1. Weight [out, in / groups,
// kh, kw] and bias [out] start uniform within 1 / sqrt(in / groups * kh * kw), as in PyTorch.
// Throws ValueError for a size below 1, a negative padding, and channels that groups do not divide.
struct Conv2dImpl : Module {
  using Size = Size2;
  using Options = Conv2dOptions;
  Conv2dImpl(int64_t in_channels, int64_t out_channels, Size2 kernel_size, const Conv2dOptions& options = {});
  // Throws ShapeError, DTypeError like conv2d.
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  int64_t in_channels, out_channels;
  Size2 kernel_size;
  Options options;
  Tensor weight, bias;  // bias is undefined without one

 protected:
  std::string extra() const override;
};

//   nn::Conv1d conv(16, 32, 3, {.padding = "same"});
BRIGADE_MODULE(Conv1d);
//   nn::Conv2d conv(16, 32, 3, {.stride = 2, .padding = 1});
//   nn::Conv2d wide(16, 32, {3, 5}, {.padding = {1, 2}, .bias = false});
BRIGADE_MODULE(Conv2d);

}  // namespace brigade::nn
