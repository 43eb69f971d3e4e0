#include "printed.h"

#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <doctest/doctest.h>

namespace brigade::test::upsample_test {

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
  CHECK_THROWS_WITH_AS(interpolate(x, {}), doctest::Contains("upsample_test.cpp:"), ValueError);
  CHECK_THROWS_WITH_AS(interpolate(x, {.scale_factor = {{1.5}}}),
                       doctest::Contains("expected 2 numbers as scale_factor, got 1"), ValueError);
  CHECK_THROWS_WITH_AS(interpolate(x, {.size = {{3}}}), doctest::Contains("2 numbers as size, got 1"), ValueError);
  CHECK_THROWS_AS(interpolate(x, {.scale_factor = {{0, 1}}}), ValueError);
  CHECK_THROWS_AS(interpolate(x, {.scale_factor = {{0.1, 1}}}), ShapeError);
  CHECK_THROWS_AS(interpolate(ones({2, 2}), {.size = {{3, 3}}}), ShapeError);
}

}  // namespace brigade::test::upsample_test
