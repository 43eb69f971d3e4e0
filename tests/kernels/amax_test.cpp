// The largest and the smallest elements over dimensions, against plain loops.
#include <brigade/core/factory.h>
#include <brigade/kernels/reduce.h>

#include <kernels/slices.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

namespace brigade::test::amax_test {

TEST_CASE("the largest and the smallest, of every dtype") {
  for_reduced_rows(kEveryDType, [&](const ReducedRow& row, DType dtype) {
    const Tensor x = normal_numbers(row.sizes, dtype, 3);
    if (x.numel() == 0 && !slices_of(x, row.dims).empty()) {
      CHECK_THROWS_WITH_AS(kernels::amax(x, row.dims, false), doctest::Contains("amax: expected at least one element"),
                           ShapeError);
      CHECK_THROWS_WITH_AS(kernels::amin(x, row.dims, false), doctest::Contains("amin: expected at least one element"),
                           ShapeError);
      return;
    }
    const Tensor largest = kernels::amax(x, row.dims, false);
    CHECK(largest.dtype() == dtype);
    check_slices(largest, x, row.dims, 0,
                 [](const Slice& slice) { return *std::max_element(slice.begin(), slice.end()); });
    const Tensor smallest = kernels::amin(x, row.dims, true);
    CHECK(smallest.dtype() == dtype);
    CHECK(smallest.dim() == x.dim());
    check_slices(smallest, x, row.dims, 0,
                 [](const Slice& slice) { return *std::min_element(slice.begin(), slice.end()); });
  });
  // Not representable in double.
  const Tensor big = tensor<int64_t>({(int64_t{1} << 62) + 1, int64_t{1} << 62});
  CHECK(kernels::amax(big, {}, false).to_vector<int64_t>()[0] == (int64_t{1} << 62) + 1);
  CHECK(kernels::amin(big, {}, false).to_vector<int64_t>()[0] == int64_t{1} << 62);
}

TEST_CASE("extremes of views are those of their copies") {
  check_views([](const Tensor& t, const Shape& dims) { return kernels::amax(t, dims, false); });
  check_views([](const Tensor& t, const Shape& dims) { return kernels::amin(t, dims, false); });
}

TEST_CASE("a NaN is the largest element and the smallest") {
  check_nan_wins([](const Tensor& x) { return kernels::amax(x, {0}, false); });
  check_nan_wins([](const Tensor& x) { return kernels::amin(x, {0}, false); });
  with_ends(kInfinity, -kInfinity, [](const Tensor& x) {
    CHECK(at(kernels::amax(x, {0}, false), 0) == kInfinity);
    CHECK(at(kernels::amin(x, {0}, false), 0) == -kInfinity);
  });
}

TEST_CASE("errors of extremes say what was expected") {
  CHECK_THROWS_WITH_AS(kernels::amax(ones({2, 2}), {0, -2}, false), doctest::Contains("appears twice"), ShapeError);
  CHECK_THROWS_AS(kernels::amin(ones({2}), {1}, false), IndexError);
}

}  // namespace brigade::test::amax_test
