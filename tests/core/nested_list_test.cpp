// tensor({...}): dtypes and shapes from nested braces, as in libtorch.
#include <brigade/core/factory.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace brigade::test::nested_list_test {

TEST_CASE("the dtype of a tensor from braces is that of libtorch") {
  CHECK(tensor({1, 2}).dtype() == kInt64);
  CHECK(tensor({int64_t{1}}).dtype() == kInt64);
  CHECK(tensor({uint8_t{1}}).dtype() == kInt64);
  CHECK(tensor({1.0, 2.0}).dtype() == kFloat32);
  CHECK(tensor({1.0F}).dtype() == kFloat32);
  CHECK(tensor({true, false}).dtype() == kBool);
  CHECK(tensor({1, 2.5}).dtype() == kFloat32);
  CHECK(tensor({true, 2}).dtype() == kInt64);
  CHECK(tensor({}).dtype() == kFloat32);
  CHECK(tensor(7).dtype() == kInt64);
  CHECK(tensor(0.5).dtype() == kFloat32);
  CHECK(scalar_tensor(2).dtype() == kFloat32);
  CHECK(scalar_tensor(0.5).dtype() == kFloat32);
  CHECK(scalar_tensor(0.1, kFloat64).to_vector<double>() == std::vector<double>{0.1});
}

TEST_CASE("a named dtype is kept") {
  CHECK(tensor<double>({1, 2}).dtype() == kFloat64);
  CHECK(tensor<int32_t>({1, 2}).dtype() == kInt32);
  CHECK(tensor({1, 2}, kFloat64).to_vector<double>() == std::vector<double>{1, 2});
  CHECK(tensor({1.75, -2.5}, kInt32).to_vector<int32_t>() == std::vector<int32_t>{1, -2});
  CHECK(scalar_tensor<double>(1).dtype() == kFloat64);
  CHECK(scalar_tensor<int64_t>(1).dtype() == kInt64);
}

TEST_CASE("braces nest") {
  const Tensor matrix = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(matrix.sizes() == Shape{2, 3});
  CHECK(matrix.to_vector<int64_t>() == std::vector<int64_t>{1, 2, 3, 4, 5, 6});
  CHECK(tensor({{{0.5}, {1.0}}}).sizes() == Shape{1, 2, 1});
  CHECK(tensor({{1}, {2}}).sizes() == Shape{2, 1});
  CHECK(tensor({}).sizes() == Shape{0});
  CHECK(tensor(7).sizes() == Shape{});
  CHECK_THROWS_WITH_AS(tensor({{1, 2}, {3}}),
                       "tensor: entry 1 of a list has shape [1], expected that of the first, [2]", ShapeError);
}

TEST_CASE("whole numbers keep all their bits") {
  constexpr int64_t kLarge = std::numeric_limits<int64_t>::max() - 1;
  CHECK(tensor({kLarge, int64_t{1}}).to_vector<int64_t>() == std::vector<int64_t>{kLarge, 1});
}

}  // namespace brigade::test::nested_list_test
