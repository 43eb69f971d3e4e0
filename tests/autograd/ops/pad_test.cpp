// Padding: values as in PyTorch, and rejected arguments.
#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

namespace brigade::test::pad_test {

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
  CHECK_THROWS_WITH_AS(pad(x, {1, 1, 1, 1, 1, 1}), doctest::Contains("pad_test.cpp"), ShapeError);
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

}  // namespace brigade::test::pad_test
