// Logarithms of sums of exponentials over dimensions, against plain loops in float64.
#include <brigade/core/factory.h>
#include <brigade/kernels/reduce.h>

#include <kernels/slices.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace brigade::test::logsumexp_test {
namespace {

double logsumexp_of(const Slice& slice) {
  double largest = -kInfinity, sum = 0;
  for (double v : slice)
    largest = std::max(largest, v);
  if (std::isinf(largest)) return largest;
  for (double v : slice)
    sum += std::exp(v - largest);
  return largest + std::log(sum);
}

Tensor times(const Tensor& x, double number) {
  return kernels::binary_scalar(x, number, kernels::BinaryOp::Mul, false);
}

}  // namespace

TEST_CASE("logsumexp over rows, columns, middles and scattered dimensions") {
  for_reduced_rows(kEveryFloating, [&](const ReducedRow& row, DType dtype) {
    const Tensor x = normal_numbers(row.sizes, dtype);
    check_slices(kernels::logsumexp(x, row.dims, false), x, row.dims, tolerance(dtype), logsumexp_of);
    // Exponentials of such numbers are not in the range of float32.
    const Tensor wide = times(x, 200);
    const Tensor found = kernels::logsumexp(wide, row.dims, true);
    CHECK(found.dtype() == dtype);
    CHECK(found.dim() == x.dim());
    check_slices(found, wide, row.dims, tolerance(dtype), logsumexp_of);
  });
}

TEST_CASE("logsumexp of views is that of their copies") {
  check_views([](const Tensor& t, const Shape& dims) { return kernels::logsumexp(t, dims, false); });
}

TEST_CASE("NaN, infinities and nothing at all in logsumexp") {
  const auto result = [](const Tensor& x) { return kernels::logsumexp(x, {0}, false); };
  check_nan_wins(result);
  with_ends(kInfinity, 0, [&](const Tensor& x) { CHECK(at(result(x), 0) == kInfinity); });
  with_ends(kInfinity, -kInfinity, [&](const Tensor& x) { CHECK(at(result(x), 0) == kInfinity); });
  with_ends(0, -kInfinity, [&](const Tensor& x) { CHECK(std::isfinite(at(result(x), 0))); });
  with_ends(0, 0, [&](const Tensor& x) {
    const Tensor nothing = kernels::binary_scalar(x, -kInfinity, kernels::BinaryOp::Sub, true);
    CHECK(at(result(nothing), 0) == -kInfinity);
  });
  CHECK(kernels::logsumexp(zeros({2, 0}), {1}, false).to_vector<double>() == Slice{-kInfinity, -kInfinity});
}

TEST_CASE("errors of logsumexp say what was expected") {
  CHECK_THROWS_WITH_AS(kernels::logsumexp(ones({2}, kBool), {}, false),
                       doctest::Contains("logsumexp: expected a floating dtype"), DTypeError);
  CHECK_THROWS_AS(kernels::logsumexp(ones({2}), {1}, false), IndexError);
  CHECK_THROWS_WITH_AS(kernels::logsumexp(ones({2, 2}), {0, -2}, false), doctest::Contains("appears twice"),
                       ShapeError);
}

}  // namespace brigade::test::logsumexp_test
