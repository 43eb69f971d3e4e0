// Transposed convolution layers, which upsample images.
#pragma once

#include <brigade/autograd/ops/conv.h>
#include <brigade/nn/module.h>

namespace brigade::nn {

// Like the options of the functions conv_transpose1d and conv_transpose2d.
struct ConvTranspose1dOptions {
  [[no_unique_address]] NamedOnly named = NamedOnly();
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t output_padding = 0;
  int64_t groups = 1;  // divides both channel counts
  bool bias = true;
  int64_t dilation = 1;
  DType dtype = DType::Float32;

  // The options of the function.
  operator ConvTranspose1dFuncOptions() const {
    return {
        .stride = stride, .padding = padding, .output_padding = output_padding, .groups = groups, .dilation = dilation};
  }  // NOLINT(*explicit*)
};
struct ConvTranspose2dOptions {
  [[no_unique_address]] NamedOnly named = NamedOnly();
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 output_padding = 0;
  int64_t groups = 1;  // divides both channel counts
  bool bias = true;
  Size2 dilation = 1;
  DType dtype = DType::Float32;

  // The options of the function.
  operator ConvTranspose2dFuncOptions() const {
    return {
        .stride = stride, .padding = padding, .output_padding = output_padding, .groups = groups, .dilation = dilation};
  }  // NOLINT(*explicit*)
};

// [N, in_channels, L] -> [N, out_channels, L'] (or without N); like ConvTranspose2d over one dimension.
struct ConvTranspose1dImpl : Module {
  using Options = ConvTranspose1dOptions;
  ConvTranspose1dImpl(int64_t in_channels, int64_t out_channels, int64_t kernel_size,
                      const ConvTranspose1dOptions& options = {});
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  int64_t in_channels, out_channels, kernel_size;
  Options options;
  Tensor weight, bias;  // [in, out / groups, k]; bias is undefined without one

 protected:
  std::string extra() const override;
};

// [N, in_channels, H, W] -> [N, out_channels, H', W'] (or without N) with
// H' = (H - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1. Weight
// [in, out / groups, kh, kw] and bias [out] start uniform within 1 / sqrt(out / groups * kh * kw),
// as in PyTorch. Throws ValueError for a size below 1, a negative padding, channels that groups do
// not divide, and an output_padding that is not below the larger of stride and dilation.
struct ConvTranspose2dImpl : Module {
  using Size = Size2;
  using Options = ConvTranspose2dOptions;
  ConvTranspose2dImpl(int64_t in_channels, int64_t out_channels, Size2 kernel_size,
                      const ConvTranspose2dOptions& options = {});
  // Throws ShapeError, DTypeError like conv_transpose2d.
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  int64_t in_channels, out_channels;
  Size2 kernel_size;
  Options options;
  Tensor weight, bias;  // bias is undefined without one

 protected:
  std::string extra() const override;
};

BRIGADE_MODULE(ConvTranspose1d);
//   nn::ConvTranspose2d up(64, 32, 4, {.stride = 2, .padding = 1});
BRIGADE_MODULE(ConvTranspose2d);

}  // namespace brigade::nn
