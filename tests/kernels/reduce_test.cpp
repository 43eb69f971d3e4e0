// Sums, means and extremes against plain loops in double.
#include <brigade/core/view.h>
#include <brigade/kernels/reduce.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <vector>

using namespace brigade;
using namespace brigade::kernels;
using test::at;
using test::numbers;

TEST_CASE("sums, means and extremes over any dimensions") {
  for (const DType dtype : {kFloat64, kFloat32, kInt64, kInt32, kUInt8, kBool}) {
    const Tensor x = numbers({3, 4, 5}, dtype);
    for (const Shape& dims : std::vector<Shape>{{}, {0}, {1}, {2}, {0, 2}, {1, 2}, {-1, 0, 1}}) {
      const Tensor result = sum(x, {.dims = dims, .keepdim = true});
      std::vector<double> expected(static_cast<size_t>(result.numel()), 0.0);
      for (int64_t i = 0; i < 60; ++i) {
        const int64_t index[] = {i / 20, i / 5 % 4, i % 5};
        int64_t position = 0;
        for (int d = 0; d < 3; ++d)
          position = position * result.sizes()[d] + (result.sizes()[d] == 1 ? 0 : index[d]);
        expected[static_cast<size_t>(position)] += at(x, i);
      }
      CAPTURE(name(dtype));
      CAPTURE(to_string(dims));
      CHECK(result.to_vector<double>() == expected);
      CHECK(result.dtype() == (is_floating_point(dtype) ? dtype : kInt64));
    }
  }
  // Pairwise summation: ten million times 0.1 in float32.
  CHECK(at(sum(full({10'000'000}, 0.1), {}), 0) == doctest::Approx(1e6).epsilon(1e-6));
  const Tensor tall = full({100'000, 3}, 0.1);
  CHECK(at(sum(tall, {.dims = {0}}), 2) == doctest::Approx(1e4).epsilon(1e-6));
  CHECK(at(mean(numbers({5}, kFloat32), {}), 0) == doctest::Approx(at(sum(numbers({5}, kFloat32), {}), 0) / 5));
  const Extremes high = max(tensor(std::vector<float>{1, 5, 5, -1, std::nanf(""), 9}, {2, 3}), 1, false);
  CHECK(high.indices.to_vector<int64_t>() == std::vector<int64_t>{1, 1});
  CHECK(at(high.values, 0) == 5);
  CHECK(min(numbers({4, 3}, kInt64), 0, true).values.sizes() == Shape{1, 3});
  CHECK_THROWS_AS(max(zeros({2, 0}), 1, false), ShapeError);
  CHECK_THROWS_AS(sum(zeros({2, 2}), {.dims = {0, -2}}), ShapeError);
  CHECK(sum_to(ones({2, 3, 4}), {3, 1}).to_vector<float>() == std::vector<float>{8, 8, 8});
}
