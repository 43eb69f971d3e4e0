// ResNet-18 (He, Zhang, Ren, Sun, "Deep residual learning for image recognition", CVPR 2016, table
// 1): a 7 x 7 convolution and a pooling of stride 2, then four stages of two blocks, and a linear
// layer.
#pragma once

#include <brigade/nn/nn.h>

namespace brigade::lab::bench {

// relu(shortcut(x) + two 3 x 3 convolutions with batch norm); the shortcut is a 1 x 1 convolution
// where the size or the channels change.
struct ResidualBlockImpl : nn::Module {
  ResidualBlockImpl(int64_t in, int64_t out, int64_t stride);
  Tensor forward(const Tensor& x);

  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d bn1{nullptr}, bn2{nullptr};
  nn::Sequential downsample{nullptr};  // empty where the shortcut is x itself
};
BRIGADE_MODULE(ResidualBlock);

// float32 [batch, 3, height, width] -> [batch, classes]. 11,689,512 parameters for 1,000 classes.
struct ResNet18Impl : nn::Module {
  explicit ResNet18Impl(int64_t classes);
  Tensor forward(const Tensor& x);

  nn::Conv2d conv1{nullptr};
  nn::BatchNorm2d bn1{nullptr};
  nn::ModuleList<ResidualBlock> blocks;
  nn::Linear fc{nullptr};
};
BRIGADE_MODULE(ResNet18);

}  // namespace brigade::lab::bench
