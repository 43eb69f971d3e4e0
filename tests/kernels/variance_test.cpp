// Variances and their gradients over dimensions, against plain loops in float64.
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/reduce.h>

#include <kernels/slices.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace brigade::test::variance_test {
namespace {

double mean_of(const Slice& slice) {
  return std::accumulate(slice.begin(), slice.end(), 0.0) / static_cast<double>(slice.size());
}

double variance_of(const Slice& slice, double correction) {
  const double mean = mean_of(slice);
  double squares = 0;
  for (double v : slice)
    squares += (v - mean) * (v - mean);
  return squares / std::max(0.0, static_cast<double>(slice.size()) - correction);
}

Tensor variance(const Tensor& x, const Shape& dims, double correction = 1) {
  return kernels::variance(x, dims, correction, false, false).variance;
}

}  // namespace

TEST_CASE("variances, their roots and means over rows, columns, middles and scattered dimensions") {
  for_reduced_rows(kEveryFloating, [&](const ReducedRow& row, DType dtype) {
    const Tensor x = normal_numbers(row.sizes, dtype);
    const double bound = tolerance(dtype);
    for (const double correction : {0.0, 1.0, 2.5}) {
      const kernels::Variance found = kernels::variance(x, row.dims, correction, false, false);
      check_slices(found.variance, x, row.dims, bound,
                   [&](const Slice& slice) { return variance_of(slice, correction); });
      check_slices(found.mean, x, row.dims, bound, &mean_of);
      const kernels::Variance root = kernels::variance(x, row.dims, correction, true, true);
      CHECK(root.variance.dim() == x.dim());
      CHECK(root.variance.dtype() == dtype);
      check_slices(root.variance, x, row.dims, bound,
                   [&](const Slice& slice) { return std::sqrt(variance_of(slice, correction)); });
    }
  });
}

TEST_CASE("variances of views are those of their copies") {
  check_views([](const Tensor& t, const Shape& dims) { return variance(t, dims); });
}

TEST_CASE("NaN and infinities in variances") {
  check_nan_wins([](const Tensor& x) { return variance(x, {0}); });
  with_ends(kInfinity, 0, [](const Tensor& x) { CHECK(std::isnan(at(variance(x, {0}), 0))); });
}

TEST_CASE("a variance is right where the mean is a million times the spread") {
  for (const auto& [sizes, dims] :
       std::vector<std::pair<Shape, Shape>>{{{20000}, {}}, {{500, 7}, {0}}, {{3, 500}, {1}}}) {
    CAPTURE(to_string(sizes));
    const Tensor x = kernels::cast(
        kernels::binary_scalar(normal_numbers(sizes, kFloat64), 1e6, kernels::BinaryOp::Add, false), kFloat32);
    check_slices(variance(x, dims), x, dims, 1e-5, [](const Slice& slice) { return variance_of(slice, 1); });
    check_slices(variance(full(sizes, 0.1F), dims), x, dims, 0, [](const Slice&) { return 0.0; });
  }
}

TEST_CASE("a root is in the range of a dtype where the variance is not") {
  const Tensor x = tensor<float>({-1e25F, 1e25F, 1e25F, -1e25F});
  CHECK(std::isinf(at(variance(x, {}, 0), 0)));
  CHECK(at(kernels::variance(x, {}, 0, false, true).variance, 0) == doctest::Approx(1e25).epsilon(1e-6));
}

TEST_CASE("too few elements for a variance") {
  const auto of_all = [](const Tensor& x, double correction) { return at(variance(x, {}, correction), 0); };
  CHECK(std::isnan(of_all(ones({1}), 1)));
  CHECK(std::isnan(of_all(ones({0}), 0)));
  CHECK(of_all(tensor<float>({1, 3}), 2) == kInfinity);
  CHECK(of_all(ones({1}), 0) == 0);
  CHECK(std::isnan(kernels::variance(ones({0, 2}), {0}, 0, false, false).mean.to_vector<double>()[1]));
}

TEST_CASE("the gradient of a variance is the distance from the mean times a factor") {
  for_reduced_rows(kEveryFloating, [&](const ReducedRow& row, DType dtype) {
    const Tensor x = normal_numbers(row.sizes, dtype);
    const Tensor mean = kernels::variance(x, row.dims, 1, true, false).mean;
    const Tensor factor = normal_numbers(mean.sizes(), dtype, 5);
    const Tensor found = kernels::variance_backward(factor, x, mean, row.dims);
    CHECK(found.sizes() == x.sizes());
    const auto exact = [](const Tensor& t) { return kernels::cast(t, kFloat64); };
    const auto expected = kernels::binary(kernels::binary(exact(x), exact(mean), kernels::BinaryOp::Sub), exact(factor),
                                          kernels::BinaryOp::Mul)
                              .to_vector<double>();
    check_near(found, expected, tolerance(dtype));
  });
  CHECK_THROWS_WITH_AS(kernels::variance_backward(ones({3}), ones({2, 3}), ones({2}), {1}),
                       doctest::Contains("var backward: expected a factor and a mean like float32 [2]"), ShapeError);
}

TEST_CASE("errors of variances say what was expected") {
  CHECK_THROWS_WITH_AS(variance(ones({2}, kInt64), {}), doctest::Contains("var: expected a floating dtype"),
                       DTypeError);
  CHECK_THROWS_AS(variance(ones({2}), {1}), IndexError);
  CHECK_THROWS_WITH_AS(variance(ones({2, 2}), {0, -2}), doctest::Contains("appears twice"), ShapeError);
}

}  // namespace brigade::test::variance_test
