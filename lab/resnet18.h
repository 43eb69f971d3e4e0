// ResNet-18 (He, Zhang, Ren, Sun: "Deep residual learning for image recognition", arXiv 1512.03385,
// sections 3.3 and 4.2), for large images and for small ones.
#pragma once

#include <brigade/nn/nn.h>

#include <cstdint>

namespace brigade::lab {

// Two 3x3 convolutions with a shortcut around both: y = relu(f(x) + x). Where size or channels change, a 1x1
// convolution brings x to the shape of f(x).
struct BasicBlockImpl : nn::Module {
  nn::Conv2d conv1{nullptr}, conv2{nullptr}, shortcut{nullptr};
  nn::BatchNorm2d norm1{nullptr}, norm2{nullptr}, shortcut_norm{nullptr};

  BasicBlockImpl(int64_t in, int64_t out, int64_t stride);
  // [N, in, H, W] -> [N, out, H / stride, W / stride], rounded up
  Tensor forward(const Tensor& x);
};
BRIGADE_MODULE(BasicBlock);

struct ResNet18Options {
  int64_t channels = 3;
  int64_t classes = 1000;
  int64_t width = 64;  // channels of the first stage
  // As usual for images of 32 x 32 or less: the stem is a 3x3 convolution, instead of a 7x7 convolution and a
  // pooling, both of stride 2.
  bool for_small_images = false;
  // Images are normalized to (image - mean) / deviation.
  double mean = 0, deviation = 1;
};

// Four stages of two blocks; each stage except the first halves the image and doubles the channels.
struct ResNet18Impl : nn::Module {
  ResNet18Options options;
  nn::Conv2d stem{nullptr};
  nn::BatchNorm2d stem_norm{nullptr};
  nn::ModuleList<BasicBlock> blocks{nullptr};
  nn::Linear head{nullptr};

  explicit ResNet18Impl(ResNet18Options options = {});
  // [N, channels, H, W] -> logits [N, classes]
  Tensor forward(const Tensor& images);
};
BRIGADE_MODULE(ResNet18);

}  // namespace brigade::lab
