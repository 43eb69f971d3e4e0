// 1-d and transposed convolutions as modules.
#include "printed.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/random.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace brigade::test::conv_test {
namespace {

std::vector<float> floats(const Tensor& x) { return x.to_vector<float>(); }

// The largest magnitude; for many uniform samples it is close to their bound.
double reach(const Tensor& x) {
  double most = 0;
  for (const float value : floats(x))
    most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

}  // namespace

TEST_CASE("Conv1d and padding in words") {
  nn::Conv1d conv(4, 6, 3, {.stride = 2, .padding = 1, .dilation = 2, .groups = 2});
  CHECK(printed(conv) == "Conv1d(4, 6, kernel_size=[3], stride=[2], padding=[1], dilation=[2], groups=2)");
  CHECK(conv->weight.sizes() == Shape{6, 2, 3});
  const Tensor x = randn({2, 4, 9});
  CHECK(floats(conv(x)) ==
        floats(conv1d(x, conv->weight, conv->bias, {.stride = 2, .padding = 1, .dilation = 2, .groups = 2})));
  nn::Conv1d same(4, 6, 4, {.padding = "same", .bias = false});
  CHECK(printed(same) == "Conv1d(4, 6, kernel_size=[4], stride=[1], padding=same, bias=false)");
  CHECK(same(x).sizes() == Shape{2, 6, 9});
  CHECK(same(x.select(0, 0)).sizes() == Shape{6, 9});
  CHECK(printed(nn::Conv2d(1, 2, 3, {.padding = "valid"})) ==
        "Conv2d(1, 2, kernel_size=[3, 3], stride=[1, 1], padding=valid)");
  CHECK(nn::Conv2d(4, 2, 5, {.padding = "same"})(randn({4, 7, 6})).sizes() == Shape{2, 7, 6});
  CHECK_THROWS_WITH_AS(nn::Conv2d(1, 2, 3, {.stride = 2, .padding = "same"}), doctest::Contains("a stride of 1"),
                       ValueError);
  CHECK_THROWS_WITH_AS(nn::Conv1d(4, 6, 3, {.groups = 4}), doctest::Contains("Conv1d: in_channels"), ValueError);
  CHECK_THROWS_WITH_AS(nn::Conv1d(4, 6, 0), doctest::Contains("at least 1"), ValueError);
}

TEST_CASE("ConvTranspose1d and ConvTranspose2d enlarge") {
  nn::ConvTranspose2d up(4, 6, {3, 2},
                         {.stride = 2, .padding = {1, 0}, .output_padding = 1, .groups = 2, .dilation = {1, 2}});
  CHECK(printed(up) ==
        "ConvTranspose2d(4, 6, kernel_size=[3, 2], stride=[2, 2], padding=[1, 0], dilation=[1, 2], "
        "output_padding=[1, 1], groups=2)");
  CHECK(up->weight.sizes() == Shape{4, 3, 3, 2});
  CHECK(up->bias.sizes() == Shape{6});
  const Tensor x = randn({2, 4, 5, 3});
  const Tensor y = up(x);
  CHECK(y.sizes() == Shape{2, 6, 10, 8});
  CHECK(floats(y) == floats(conv_transpose2d(x, up->weight, up->bias, up->options)));
  nn::ConvTranspose1d up_1d(3, 2, 4, {.stride = 2, .padding = 1, .bias = false});
  CHECK(printed(up_1d) == "ConvTranspose1d(3, 2, kernel_size=[4], stride=[2], padding=[1], bias=false)");
  CHECK(up_1d(randn({3, 7})).sizes() == Shape{2, 14});
  CHECK_THROWS_WITH_AS(nn::ConvTranspose2d(2, 2, 3, {.output_padding = 1}),
                       doctest::Contains("below the larger of stride and dilation, got [1, 1]"), ValueError);
  CHECK_THROWS_WITH_AS(nn::ConvTranspose1d(2, 3, 3, {.groups = 2}), doctest::Contains("divisible by groups"),
                       ValueError);
}

TEST_CASE("weights start uniform within one over the root of the second dimension times the kernel, as PyTorch's") {
  manual_seed(5);
  // Transposed weights are [in, out / groups, ...]: PyTorch computes the fan in from the out channels.
  nn::ConvTranspose2d up(64, 8, 3);
  CHECK(reach(up->weight) <= 1 / std::sqrt(8 * 9.0));
  CHECK(reach(up->weight) >= 0.99 / std::sqrt(8 * 9.0));
  CHECK(reach(up->bias) <= 1 / std::sqrt(8 * 9.0));
  nn::Conv1d conv(64, 128, 5, {.groups = 2});
  CHECK(reach(conv->weight) <= 1 / std::sqrt(32 * 5.0));
  CHECK(reach(conv->weight) >= 0.99 / std::sqrt(32 * 5.0));
  CHECK(reach(conv->bias) >= 0.9 / std::sqrt(32 * 5.0));
}

}  // namespace brigade::test::conv_test
