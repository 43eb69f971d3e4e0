// Modules that resample or rearrange: fold, upsampling, pooling.
#include "printed.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/random.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <doctest/doctest.h>

namespace brigade::test::resampling_test {

TEST_CASE("Unfold, Fold and the shuffles of pixels hand their options on") {
  const Tensor x = randn({2, 4, 6, 8});
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.sizes() == b.sizes() && a.to_vector<float>() == b.to_vector<float>();
  };
  nn::Unfold unfolded({2, 3}, {.dilation = 2, .padding = {1, 0}, .stride = {1, 2}});
  const FoldOptions options{.dilation = 2, .padding = {1, 0}, .stride = {1, 2}};
  CHECK(same(unfolded(x), unfold(x, {2, 3}, options)));
  CHECK(printed(unfolded) == "Unfold(kernel_size=[2, 3], dilation=[2, 2], padding=[1, 0], stride=[1, 2])");
  nn::Fold folded({6, 8}, {2, 3}, {.dilation = 2, .padding = {1, 0}, .stride = {1, 2}});
  CHECK(same(folded(unfolded(x)), fold(unfold(x, {2, 3}, options), {6, 8}, {2, 3}, options)));
  CHECK(printed(folded) ==
        "Fold(output_size=[6, 8], kernel_size=[2, 3], dilation=[2, 2], padding=[1, 0], stride=[1, 2])");
  nn::PixelShuffle shuffle(2);
  CHECK(same(shuffle(x), pixel_shuffle(x, 2)));
  CHECK(printed(shuffle) == "PixelShuffle(upscale_factor=2)");
  nn::PixelUnshuffle unshuffle(2);
  CHECK(same(unshuffle(x), pixel_unshuffle(x, 2)));
  CHECK(printed(unshuffle) == "PixelUnshuffle(downscale_factor=2)");
  CHECK_THROWS_WITH_AS(nn::Unfold(0), doctest::Contains("Unfold: kernel_size"), ValueError);
  CHECK_THROWS_WITH_AS(nn::Fold({0, 2}, 1), doctest::Contains("Fold: output_size must be at least 1, got 0"),
                       ValueError);
  CHECK_THROWS_WITH_AS(nn::PixelShuffle(0), doctest::Contains("upscale_factor must be at least 1"), ValueError);
}

TEST_CASE("Upsample resizes by a size or by factors, and passes gradients on") {
  const Tensor x = tensor(std::vector<float>{1, 2, 3, 4}, {1, 1, 2, 2}).requires_grad_();
  nn::Upsample doubled({.scale_factor = 2});
  const Tensor y = doubled(x);
  CHECK(y.to_vector<float>() == std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});
  y.sum().backward();
  CHECK(x.grad().to_vector<float>() == std::vector<float>(4, 4));

  nn::Upsample sized({.size = Size2(3, 3), .mode = InterpolateMode::Bilinear, .align_corners = true});
  CHECK(sized(x).to_vector<float>() == std::vector<float>{1, 1.5, 2, 2, 2.5, 3, 3, 3.5, 4});
  nn::Upsample uneven({.scale_factor = nn::Scale2(1, 2.5), .mode = InterpolateMode::Bilinear});
  CHECK(uneven(x).sizes() == Shape{1, 1, 2, 5});

  nn::Sequential net(nn::Upsample(nn::UpsampleOptions{.scale_factor = 2}), nn::ReLU());
  CHECK(net(x).sizes() == Shape{1, 1, 4, 4});
}

TEST_CASE("sequences are resized by one number, or by two that are equal") {
  const Tensor x = tensor(std::vector<float>{1, 2, 4}, {1, 1, 3});
  CHECK(nn::Upsample({.scale_factor = 2})(x).to_vector<float>() == std::vector<float>{1, 1, 2, 2, 4, 4});
  nn::Upsample linear({.size = 5, .mode = InterpolateMode::Linear, .align_corners = true});
  CHECK(linear(x).to_vector<float>() == std::vector<float>{1, 1.5, 2, 3, 4});
  CHECK(interpolate(x, {.size = {{6}}}).to_vector<float>() == std::vector<float>{1, 1, 2, 2, 4, 4});
  CHECK_THROWS_WITH_AS(nn::Upsample({.size = Size2(2, 3)})(x), doctest::Contains("expected 1 number as size, got 2"),
                       ValueError);
  CHECK_THROWS_WITH_AS(interpolate(x, {.size = {{5}}, .mode = InterpolateMode::Bicubic}),
                       doctest::Contains("expected [N, C, H, W], got [1, 1, 3]"), ShapeError);
  CHECK_THROWS_WITH_AS(interpolate(ones({1, 1, 2, 2}), {.size = {{5}}, .mode = InterpolateMode::Linear}),
                       doctest::Contains("expected [N, C, L] for Linear, got [1, 1, 2, 2]"), ShapeError);
}

TEST_CASE("Upsample says what it is, and what it does not take") {
  CHECK(printed(nn::Upsample({.scale_factor = 2})) == "Upsample(scale_factor=[2, 2], mode=nearest)");
  CHECK(printed(nn::Upsample({.size = 7, .mode = InterpolateMode::Bilinear})) ==
        "Upsample(size=[7, 7], mode=bilinear)");
  CHECK(printed(nn::Upsample(
            {.scale_factor = nn::Scale2(1, 1.5), .mode = InterpolateMode::Bicubic, .align_corners = true})) ==
        "Upsample(scale_factor=[1, 1.5], mode=bicubic, align_corners=true)");
  CHECK(printed(nn::Upsample({.size = 3, .mode = InterpolateMode::Linear})) == "Upsample(size=[3, 3], mode=linear)");
  CHECK_THROWS_WITH_AS(nn::Upsample(nn::UpsampleOptions{}), doctest::Contains("got neither"), ValueError);
  CHECK_THROWS_WITH_AS(nn::Upsample({.size = 2, .scale_factor = 2}), doctest::Contains("got both"), ValueError);
  CHECK_THROWS_AS(nn::Upsample({.size = 0}), ValueError);
  CHECK_THROWS_AS(nn::Upsample({.scale_factor = -1}), ValueError);
  CHECK_THROWS_AS(nn::Upsample({.size = 2, .align_corners = true}), ValueError);

  const Tensor x = ones({1, 1, 2, 2});
  CHECK_THROWS_WITH_AS(interpolate(x, {}), doctest::Contains("resampling_test.cpp:"), ValueError);
  CHECK_THROWS_WITH_AS(interpolate(x, {.scale_factor = {{1.5}}}),
                       doctest::Contains("expected 2 numbers as scale_factor, got 1"), ValueError);
  CHECK_THROWS_WITH_AS(interpolate(x, {.size = {{3}}}), doctest::Contains("2 numbers as size, got 1"), ValueError);
  CHECK_THROWS_AS(interpolate(x, {.scale_factor = {{0, 1}}}), ValueError);
  CHECK_THROWS_AS(interpolate(x, {.scale_factor = {{0.1, 1}}}), ShapeError);
  CHECK_THROWS_AS(interpolate(ones({2, 2}), {.size = {{3, 3}}}), ShapeError);
}

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

}  // namespace brigade::test::resampling_test
