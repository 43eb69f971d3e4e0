// Values of unfold, fold, and the pixel shuffles, as in PyTorch.
#include "compositions.h"

namespace brigade::test::fold_test {

TEST_CASE("fold after unfold counts the windows over each pixel") {
  const Tensor x = ones({1, 3, 4}, kFloat64);
  const Tensor columns = unfold(x, 2);
  CHECK(columns.sizes() == Shape{4, 6});
  CHECK(fold(columns, {3, 4}, 2).to_vector<double>() == std::vector<double>{1, 2, 2, 1, 2, 4, 4, 2, 1, 2, 2, 1});
  const Tensor numbers = arange(0, 8, 1, kFloat64).reshape({1, 2, 2, 2});
  CHECK(unfold(numbers, {1, 2}).to_vector<double>() == std::vector<double>{0, 2, 1, 3, 4, 6, 5, 7});
}

TEST_CASE("a convolution is a product with unfolded windows") {
  const Tensor x = normal_input({2, 3, 6, 5}, 1);
  const Tensor weight = normal_input({4, 3, 3, 2}, 2);
  const Tensor y = conv2d(x, weight, {}, {.stride = {2, 1}, .padding = {1, 1}, .dilation = {1, 2}});
  const Tensor columns = unfold(x, {3, 2}, {.dilation = {1, 2}, .padding = 1, .stride = {2, 1}});
  CHECK(largest_difference(matmul(weight.reshape({4, -1}), columns).reshape(y.sizes()), y) < 1e-12);
}

TEST_CASE("pixel_shuffle makes pixels of channels, pixel_unshuffle channels of pixels") {
  const Tensor x = arange(0, 16, 1, kFloat64).reshape({1, 8, 1, 2});
  const Tensor y = pixel_shuffle(x, 2);
  CHECK(y.sizes() == Shape{1, 2, 2, 4});
  CHECK(y.to_vector<double>() == std::vector<double>{0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15});
  CHECK(y.is_contiguous());
  CHECK(pixel_unshuffle(y, 2).to_vector<double>() == x.to_vector<double>());
  const Tensor stack = normal_input({2, 2, 9, 2, 3}, 1);
  CHECK(pixel_shuffle(stack, 3).sizes() == Shape{2, 2, 1, 6, 9});
  CHECK(largest_difference(pixel_unshuffle(pixel_shuffle(stack, 3), 3), stack) == 0);
  CHECK_THROWS_WITH_AS(pixel_shuffle(x, 3), doctest::Contains("no multiple of upscale_factor 3 squared"), ShapeError);
  CHECK_THROWS_WITH_AS(pixel_unshuffle(x, 2), doctest::Contains("fold_test.cpp:"), ShapeError);
  CHECK_THROWS_AS(pixel_shuffle(x, 0), ValueError);
  CHECK_THROWS_AS(pixel_shuffle(ones({2, 2}), 1), ShapeError);
  CHECK_THROWS_WITH_AS(unfold(ones({2, 2}), 1), doctest::Contains("fold_test.cpp:"), ShapeError);
}

}  // namespace brigade::test::fold_test
