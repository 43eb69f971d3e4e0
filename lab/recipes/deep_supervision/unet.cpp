// The way down, the way up, and the heads.
#include <brigade/lab/recipes/deep_supervision/unet.h>

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::lab {
namespace {

nn::Conv2d convolution(int64_t from, int64_t to) { return nn::Conv2d(from, to, 3, {.padding = 1}); }

Tensor twice_as_large(const Tensor& x) { return interpolate(x, {.scale_factor = {{2, 2}}}); }

}  // namespace

SmallUNetImpl::SmallUNetImpl() {
  down_fine = register_module("down_fine", convolution(1, 8));
  down_middle = register_module("down_middle", convolution(8, 16));
  bottom = register_module("bottom", convolution(16, 32));
  up_middle = register_module("up_middle", convolution(32 + 16, 16));
  up_fine = register_module("up_fine", convolution(16 + 8, 8));
  head_fine = register_module("head_fine", nn::Conv2d(8, 1, 1));
  head_middle = register_module("head_middle", nn::Conv2d(16, 1, 1));
  head_coarse = register_module("head_coarse", nn::Conv2d(32, 1, 1));
}

std::vector<Tensor> SmallUNetImpl::forward(const Tensor& images) {
  const Tensor fine = relu(down_fine(images));
  const Tensor middle = relu(down_middle(max_pool2d(fine, 2)));
  const Tensor coarse = relu(bottom(max_pool2d(middle, 2)));
  const Tensor middle_again = relu(up_middle(cat({twice_as_large(coarse), middle}, 1)));
  const Tensor fine_again = relu(up_fine(cat({twice_as_large(middle_again), fine}, 1)));
  return {head_fine(fine_again), head_middle(middle_again), head_coarse(coarse)};
}

WeightedUNetImpl::WeightedUNetImpl(const std::vector<double>& values, bool as_parameter) {
  const Tensor given = tensor(values, {static_cast<int64_t>(values.size())}).to(kFloat32);
  weights = as_parameter ? register_parameter("weights", given) : register_buffer("weights", given);
}

}  // namespace brigade::lab
