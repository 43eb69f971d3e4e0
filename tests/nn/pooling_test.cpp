// 1-d, dilated, and adaptive pooling as modules.
#include "printed.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/random.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <doctest/doctest.h>

namespace brigade::test::pooling_test {

namespace {

std::vector<float> floats(const Tensor& x) { return x.to_vector<float>(); }

}  // namespace

TEST_CASE("pooling over one dimension hands its options on") {
  const Tensor x = randn({2, 3, 9});
  nn::MaxPool1d largest(3, {.stride = 2, .padding = 1, .dilation = 2, .ceil_mode = true});
  CHECK(printed(largest) == "MaxPool1d(kernel_size=3, stride=2, padding=1, dilation=2, ceil_mode=true)");
  CHECK(floats(largest(x)) == floats(max_pool1d(x, 3, {.stride = 2, .padding = 1, .dilation = 2, .ceil_mode = true})));
  nn::AvgPool1d average(3, {.padding = 1, .count_include_pad = false});
  CHECK(printed(average) == "AvgPool1d(kernel_size=[3], stride=[3], padding=[1])");
  CHECK(floats(average(x)) == floats(avg_pool1d(x, 3, {.padding = 1, .count_include_pad = false})));
  CHECK(average(x.select(0, 0)).sizes() == Shape{3, 3});
  CHECK_THROWS_WITH_AS(nn::MaxPool1d(0), doctest::Contains("at least 1, got 0, 0 and 1"), ValueError);
  CHECK_THROWS_WITH_AS(nn::AvgPool1d(2, {.stride = 0}),
                       doctest::Contains("AvgPool1d: kernel_size and stride must be at least 1, got 2 and 0"),
                       ValueError);
}

TEST_CASE("dilated windows and a divisor of one's own") {
  const Tensor x = randn({2, 3, 7, 8});
  nn::MaxPool2d largest(2, {.stride = 1, .dilation = {2, 3}});
  CHECK(printed(largest) ==
        "MaxPool2d(kernel_size=[2, 2], stride=[1, 1], padding=[0, 0], dilation=[2, 3], ceil_mode=false)");
  CHECK(largest(x).sizes() == Shape{2, 3, 5, 5});
  nn::AvgPool2d sums(2, {.divisor_override = 1});
  CHECK(floats(sums(x)) == floats(avg_pool2d(x, 2, {.divisor_override = 1})));
  CHECK_THROWS_WITH_AS(nn::AvgPool2d(2, {.divisor_override = 0}), doctest::Contains("must not be 0"), ValueError);
  CHECK_THROWS_AS(nn::MaxPool2d(2, {.dilation = 0}), ValueError);
}

TEST_CASE("adaptive pooling gives the size asked for") {
  const Tensor x = randn({2, 3, 7, 8});
  nn::AdaptiveAvgPool2d average({3, std::nullopt});
  CHECK(printed(average) == "AdaptiveAvgPool2d(output_size=[3, none])");
  CHECK(average(x).sizes() == Shape{2, 3, 3, 8});
  CHECK(floats(average(x)) == floats(adaptive_avg_pool2d(x, {3, 8})));
  CHECK(nn::AdaptiveAvgPool2d(1)(x.select(0, 0)).sizes() == Shape{3, 1, 1});
  nn::AdaptiveMaxPool2d largest({2, 5});
  CHECK(printed(largest) == "AdaptiveMaxPool2d(output_size=[2, 5])");
  CHECK(floats(largest(x)) == floats(adaptive_max_pool2d(x, {2, 5})));
  const Tensor sequence = x.select(0, 1);
  CHECK(printed(nn::AdaptiveAvgPool1d(5)) == "AdaptiveAvgPool1d(output_size=5)");
  CHECK(floats(nn::AdaptiveAvgPool1d(5)(sequence)) == floats(adaptive_avg_pool1d(sequence, 5)));
  CHECK(floats(nn::AdaptiveMaxPool1d(5)(sequence)) == floats(adaptive_max_pool1d(sequence, 5)));
  CHECK_THROWS_WITH_AS(nn::AdaptiveAvgPool2d(PoolOutputSize(0, 2)), doctest::Contains("must be at least 1, got 0"),
                       ValueError);
  CHECK_THROWS_AS(nn::AdaptiveMaxPool1d(0), ValueError);
}

TEST_CASE("errors of pooling over sequences speak of sequences") {
  const Tensor sequence = zeros({2, 3, 4});
  CHECK_THROWS_WITH_AS(max_pool1d(sequence, 5),
                       doctest::Contains("max_pool1d: input [2, 3, 4] is too small for kernel_size 5"), ShapeError);
  CHECK_THROWS_WITH_AS(avg_pool1d(sequence, 2, {.padding = 2}),
                       doctest::Contains("avg_pool1d: padding must be between 0 and half of kernel_size, got 2"),
                       ValueError);
  CHECK_THROWS_WITH_AS(adaptive_avg_pool1d(zeros({2, 3, 0}), 2),
                       doctest::Contains("adaptive_avg_pool1d: input [2, 3, 0] is too small to be pooled"), ShapeError);
  CHECK_THROWS_WITH_AS(max_pool2d(sequence, {5, 1}),
                       doctest::Contains("max_pool2d: input [2, 3, 4] is too small for kernel_size [5, 1]"),
                       ShapeError);
}

}  // namespace brigade::test::pooling_test
