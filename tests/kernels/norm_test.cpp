// Vector norms over dimensions, against plain loops in float64.
#include <brigade/core/factory.h>
#include <brigade/kernels/reduce.h>

#include <kernels/slices.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace brigade::test::norm_test {
namespace {

double norm_of(const Slice& slice, double p) {
  double sum = 0, largest = 0, smallest = kInfinity;
  for (double v : slice) {
    sum += p == 0 ? (v != 0 ? 1 : 0) : std::pow(std::abs(v), p);
    largest = std::max(largest, std::abs(v));
    smallest = std::min(smallest, std::abs(v));
  }
  if (std::isinf(p)) return p > 0 ? largest : smallest;
  return p == 0 ? sum : std::pow(sum, 1 / p);
}

constexpr double kOrders[] = {0.0, 1.0, 2.0, 3.0, 0.5, -2.0, kInfinity, -kInfinity};

}  // namespace

TEST_CASE("norms over rows, columns, middles and scattered dimensions") {
  for_reduced_rows(kEveryFloating, [&](const ReducedRow& row, DType dtype) {
    const Tensor x = normal_numbers(row.sizes, dtype);
    const double bound = tolerance(dtype);
    for (const double p : kOrders) {
      CAPTURE(p);
      const bool is_empty = x.numel() == 0 && !slices_of(x, row.dims).empty();
      if (is_empty && (p < 0 || std::isinf(p))) {
        CHECK_THROWS_WITH_AS(kernels::norm(x, p, row.dims, false), doctest::Contains("of no elements"), ShapeError);
        continue;
      }
      if (dtype == kFloat16 && x.numel() > (p == 0.5 ? 1000 : 60000)) continue;  // overflows float16
      check_slices(kernels::norm(x, p, row.dims, true), x, row.dims, p < 0 ? 10 * bound : bound,
                   [&](const Slice& slice) { return norm_of(slice, p); });
    }
  });
}

TEST_CASE("norms of views are those of their copies") {
  for (const double p : kOrders)
    check_views([&](const Tensor& t, const Shape& dims) { return kernels::norm(t, p, dims, false); });
}

TEST_CASE("a NaN is the norm, whatever its order") {
  for (const double p : {kInfinity, -kInfinity, 1.0, 2.0, 3.0})
    check_nan_wins([&](const Tensor& x) { return kernels::norm(x, p, {0}, false); });
}

TEST_CASE("errors of norms say what was expected") {
  CHECK_THROWS_WITH_AS(kernels::norm(ones({2}, kInt32), 2, {}, false),
                       doctest::Contains("norm: expected a floating dtype"), DTypeError);
  CHECK_THROWS_AS(kernels::norm(ones({2}), 2, {1}, false), IndexError);
  CHECK_THROWS_WITH_AS(kernels::norm(ones({2, 2}), 2, {0, -2}, false), doctest::Contains("appears twice"), ShapeError);
}

}  // namespace brigade::test::norm_test
