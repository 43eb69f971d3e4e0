// The layers of ResNet-18 and their order.
#include <brigade/lab/bench/ddp/resnet18.h>

#include <brigade/autograd/functional.h>

namespace brigade::lab::bench {

ResidualBlockImpl::ResidualBlockImpl(int64_t in, int64_t out, int64_t stride) {
  conv1 = register_module("conv1", nn::Conv2d(in, out, 3, {.stride = stride, .padding = 1, .bias = false}));
  bn1 = register_module("bn1", nn::BatchNorm2d(out));
  conv2 = register_module("conv2", nn::Conv2d(out, out, 3, {.padding = 1, .bias = false}));
  bn2 = register_module("bn2", nn::BatchNorm2d(out));
  if (in == out && stride == 1) return;
  downsample = register_module(
      "downsample", nn::Sequential(nn::Conv2d(in, out, 1, {.stride = stride, .bias = false}), nn::BatchNorm2d(out)));
}

Tensor ResidualBlockImpl::forward(const Tensor& x) {
  const Tensor shortcut = downsample ? downsample(x) : x;
  return relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut);
}

ResNet18Impl::ResNet18Impl(int64_t classes) {
  conv1 = register_module("conv1", nn::Conv2d(3, 64, 7, {.stride = 2, .padding = 3, .bias = false}));
  bn1 = register_module("bn1", nn::BatchNorm2d(64));
  register_module("blocks", blocks);
  int64_t in = 64;
  for (const int64_t out : {64, 128, 256, 512}) {
    blocks->push_back(ResidualBlock(in, out, in == out ? 1 : 2));
    blocks->push_back(ResidualBlock(out, out, 1));
    in = out;
  }
  fc = register_module("fc", nn::Linear(512, classes));
}

Tensor ResNet18Impl::forward(const Tensor& x) {
  Tensor y = max_pool2d(relu(bn1(conv1(x))), 3, {.stride = 2, .padding = 1});
  for (ResidualBlock& block : *blocks)
    y = block(y);
  return fc(adaptive_avg_pool2d(y, 1).flatten(1));
}

}  // namespace brigade::lab::bench
