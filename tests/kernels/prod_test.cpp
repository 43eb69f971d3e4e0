// Products over dimensions, against plain loops.
#include <brigade/core/factory.h>
#include <brigade/kernels/reduce.h>

#include <kernels/slices.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <numeric>

namespace brigade::test::prod_test {

TEST_CASE("products of every dtype; of integers and bool they are int64") {
  for_reduced_rows(kEveryDType, [&](const ReducedRow& row, DType dtype) {
    const Tensor x = normal_numbers(row.sizes, dtype, 3);
    if (x.numel() >= 10000) return;
    const Tensor found = kernels::prod(x, row.dims, false);
    CHECK(found.dtype() == (is_floating_point(dtype) ? dtype : kInt64));
    check_slices(found, x, row.dims, is_floating_point(dtype) ? 10 * tolerance(dtype) : 0, [](const Slice& slice) {
      return std::accumulate(slice.begin(), slice.end(), 1.0, std::multiplies<>());
    });
  });
}

// The product of many normal numbers is close to 0, which hides errors; these products are not.
TEST_CASE("a product takes every factor of a long slice, and no other") {
  for (const DType dtype : kEveryDType) {
    if (dtype == kBool) continue;
    CAPTURE(name(dtype));
    for (const int64_t length : {1, 7, 33, 300, 70001}) {
      CAPTURE(length);
      for (const int64_t inner : {1, 5}) {
        CAPTURE(inner);
        const Tensor x = ones({2, length, inner}, dtype);
        for (const int64_t factor : {int64_t{0}, length / 2, length - 1})
          kernels::fill(view::slice(view::slice(x, 0, 1, 2), 1, factor, factor + 1), 3);
        const double product = length == 1 ? 3 : 27;
        const auto found = kernels::prod(x, {1}, true).to_vector<double>();
        REQUIRE(found.size() == static_cast<size_t>(2 * inner));
        for (int64_t i = 0; i < 2 * inner; ++i)
          CHECK(found[static_cast<size_t>(i)] == (i < inner ? 1 : product));
      }
    }
  }
  // Not representable in double.
  const Tensor big = tensor<int64_t>({(int64_t{1} << 60) + 1, 3});
  CHECK(kernels::prod(big, {}, false).to_vector<int64_t>()[0] == 3 * ((int64_t{1} << 60) + 1));
}

TEST_CASE("products of views are those of their copies; of no elements they are 1") {
  check_views([](const Tensor& t, const Shape& dims) { return kernels::prod(t, dims, false); });
  CHECK(kernels::prod(zeros({2, 0}), {1}, false).to_vector<double>() == Slice{1, 1});
  CHECK(kernels::prod(zeros({0}, kBool), {}, false).to_vector<int64_t>() == std::vector<int64_t>{1});
  check_nan_wins([](const Tensor& x) { return kernels::prod(x, {0}, false); });
}

TEST_CASE("errors of products say what was expected") {
  CHECK_THROWS_AS(kernels::prod(ones({2}), {1}, false), IndexError);
  CHECK_THROWS_WITH_AS(kernels::prod(ones({2, 2}), {0, -2}, false), doctest::Contains("appears twice"), ShapeError);
}

}  // namespace brigade::test::prod_test
