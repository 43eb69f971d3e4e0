// Convolution 3 x 3, batch norm, ReLU. No bias: batch norm would cancel it.
#pragma once

#include <brigade/autograd/ops/activation.h>
#include <brigade/nn/batch_norm.h>
#include <brigade/nn/conv.h>

namespace brigade::lab::reference {

struct ConvNormImpl : nn::Module {
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d norm{nullptr};
  ConvNormImpl(int64_t channels, int64_t out_channels) {
    conv = register_module("conv", nn::Conv2d(channels, out_channels, 3, {.padding = 1, .bias = false}));
    norm = register_module("norm", nn::BatchNorm2d(out_channels));
  }
  Tensor forward(const Tensor& x) { return relu(norm(conv(x))); }
};
BRIGADE_MODULE(ConvNorm);

}  // namespace brigade::lab::reference
