// Builds the blocks of ResNet-18, and runs images through them.
#include <brigade/lab/resnet18.h>

#include <brigade/autograd/functional.h>

namespace brigade::lab {
namespace {

// No bias: the normalization that follows would cancel it.
nn::Conv2d convolution(int64_t in, int64_t out, int64_t size, int64_t stride) {
  return nn::Conv2d(in, out, size, {.stride = stride, .padding = size / 2, .bias = false});
}

}  // namespace

BasicBlockImpl::BasicBlockImpl(int64_t in, int64_t out, int64_t stride) {
  conv1 = register_module("conv1", convolution(in, out, 3, stride));
  norm1 = register_module("norm1", nn::BatchNorm2d(out));
  conv2 = register_module("conv2", convolution(out, out, 3, 1));
  norm2 = register_module("norm2", nn::BatchNorm2d(out));
  if (in == out && stride == 1) return;
  shortcut = register_module("shortcut", convolution(in, out, 1, stride));
  shortcut_norm = register_module("shortcut_norm", nn::BatchNorm2d(out));
}

Tensor BasicBlockImpl::forward(const Tensor& x) {
  const Tensor found = norm2(conv2(relu(norm1(conv1(x)))));
  return relu(found + (shortcut ? shortcut_norm(shortcut(x)) : x));
}

ResNet18Impl::ResNet18Impl(ResNet18Options given) : options(given) {
  stem = register_module("stem", options.for_small_images ? convolution(options.channels, options.width, 3, 1)
                                                          : convolution(options.channels, options.width, 7, 2));
  stem_norm = register_module("stem_norm", nn::BatchNorm2d(options.width));
  nn::ModuleList<BasicBlock> all;
  int64_t in = options.width;
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t out = options.width << stage;
    all->push_back(BasicBlock(in, out, stage == 0 ? 1 : 2));
    all->push_back(BasicBlock(out, out, 1));
    in = out;
  }
  blocks = register_module("blocks", all);
  head = register_module("head", nn::Linear(in, options.classes));
}

Tensor ResNet18Impl::forward(const Tensor& images) {
  const bool as_they_are = options.mean == 0 && options.deviation == 1;
  Tensor x = relu(stem_norm(stem(as_they_are ? images : (images - options.mean) / options.deviation)));
  if (!options.for_small_images) x = max_pool2d(x, 3, {.stride = 2, .padding = 1});
  for (size_t i = 0; i < blocks->size(); ++i)
    x = (*blocks)[i](x);
  return head(x.mean({2, 3}));
}

}  // namespace brigade::lab
