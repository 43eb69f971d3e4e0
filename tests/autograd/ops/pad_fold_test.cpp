// Padding, unfold, fold and the pixel shuffles: values as in PyTorch, and rejected arguments.
#include "compositions.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

namespace brigade::test::pad_fold_test {
namespace {

using Values = std::vector<float>;
Values values(const Tensor& x) { return x.to_vector<float>(); }
Tensor counted(const Shape& sizes, DType dtype = kFloat32) {
  return arange(0, static_cast<double>(sizes.numel()), 1, {dtype}).reshape(sizes);
}

}  // namespace

TEST_CASE("a constant border, and one that takes away") {
  const Tensor x = counted({2, 3});
  CHECK(values(pad(x, {1, -1, 0, 1}, PadMode::Constant, 9)) == Values{9, 0, 1, 9, 3, 4, 9, 9, 9});
  CHECK(values(pad(x.t(), {1, 0})) == Values{0, 0, 3, 0, 1, 4, 0, 2, 5});
  CHECK(pad(x, {0, 0, -1, -1}).sizes() == Shape{0, 3});
  CHECK(values(pad(zeros({0, 2}), {0, 0, 1, 0}, PadMode::Constant, 2)) == Values{2, 2});
  CHECK(values(pad(x, {})) == values(x));
  CHECK(pad(x, {0, 0}).storage().get() != x.storage().get());
  for (const DType dtype : {kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kUInt8})
    CHECK(values(pad(counted({2}, dtype), {1, 1}, PadMode::Constant, 7)) == Values{7, 0, 1, 7});
  CHECK_THROWS_WITH_AS(pad(x, {-2, -2}), doctest::Contains("more elements are taken away"), ShapeError);
  CHECK_THROWS_WITH_AS(pad(x, {-4, 5}), doctest::Contains("more elements are taken away"), ShapeError);
  CHECK_THROWS_AS(pad(x, {1}), ShapeError);
  CHECK_THROWS_WITH_AS(pad(x, {1, 1, 1, 1, 1, 1}), doctest::Contains("pad_fold_test.cpp"), ShapeError);
}

TEST_CASE("borders made of the tensor itself") {
  const Tensor row = counted({1, 3});
  CHECK(values(pad(row, {2, 1}, PadMode::Reflect)) == Values{2, 1, 0, 1, 2, 1});
  CHECK(values(pad(row, {2, 1}, PadMode::Replicate)) == Values{0, 0, 0, 1, 2, 2});
  CHECK(values(pad(row, {2, 1}, PadMode::Circular)) == Values{1, 2, 0, 1, 2, 0});
  CHECK(values(pad(row, {-1, 1}, PadMode::Reflect)) == Values{1, 2, 1});
  const Tensor image = counted({1, 3, 4});
  CHECK(values(pad(image, {1, 2, 2, 1}, PadMode::Reflect)) == Values{9, 8, 9, 10, 11, 10, 9, 5, 4, 5, 6, 7, 6, 5,
                                                                     1, 0, 1, 2,  3,  2,  1, 5, 4, 5, 6, 7, 6, 5,
                                                                     9, 8, 9, 10, 11, 10, 9, 5, 4, 5, 6, 7, 6, 5});
  CHECK(values(pad(image, {1, 2, 2, 1}, PadMode::Replicate)) ==
        Values{0, 0, 1, 2, 3, 3, 3, 0, 0, 1, 2,  3,  3,  3,  0, 0, 1, 2,  3,  3,  3,
               4, 4, 5, 6, 7, 7, 7, 8, 8, 9, 10, 11, 11, 11, 8, 8, 9, 10, 11, 11, 11});
  CHECK(values(pad(image, {1, 2, 2, 1}, PadMode::Circular)) == Values{7,  4, 5, 6,  7,  4, 5, 11, 8, 9, 10, 11, 8, 9,
                                                                      3,  0, 1, 2,  3,  0, 1, 7,  4, 5, 6,  7,  4, 5,
                                                                      11, 8, 9, 10, 11, 8, 9, 3,  0, 1, 2,  3,  0, 1});
  CHECK(values(pad(image.transpose(1, 2), {1, 0}, PadMode::Replicate)) ==
        values(pad(image.transpose(1, 2).contiguous(), {1, 0}, PadMode::Replicate)));
  CHECK(values(pad(row, {5, 7}, PadMode::Replicate)) == Values{0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2});
  CHECK_THROWS_WITH_AS(pad(row, {3, 0}, PadMode::Reflect), doctest::Contains("borders of at most 2"), ShapeError);
  CHECK_THROWS_WITH_AS(pad(row, {0, 4}, PadMode::Circular), doctest::Contains("borders of at most 3"), ShapeError);
  CHECK_THROWS_AS(pad(zeros({1, 0}), {1, 0}, PadMode::Replicate), ShapeError);
}

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

}  // namespace brigade::test::pad_fold_test
