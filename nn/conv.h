// Convolution layers.
#pragma once

#include <brigade/autograd/ops/conv.h>
#include <brigade/nn/module.h>

namespace brigade::nn {

// nn::Conv2d(16, 32, 3, Conv2dParams{.stride = {2, 2}, .padding = {1, 1}}):
// [N, in, H, W] -> [N, out, H', W']. Weight [out, in / groups, k, k] and bias start uniform within 1 / sqrt(fan_in), as
// in PyTorch.
struct Conv2dImpl : Module {
  Conv2dImpl(int64_t in_channels, int64_t out_channels, int64_t kernel_size, const Conv2dParams& params = {},
             bool bias = true, DType dtype = DType::Float32);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  Conv2dParams params;
  Tensor weight, bias;

 protected:
  std::string extra() const override;
};
BRIGADE_MODULE(Conv2d);

}  // namespace brigade::nn
