#include <nn/models.h>
#include <nn/printed.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::group_norm_test {
namespace {

Tensor batch(const Shape& sizes, uint64_t seed) {
  RandomGenerator generator(seed);
  return randn(sizes, kFloat64, &generator) * 3.0 + 1.0;
}

double largest(const Tensor& x) { return max(abs(x.detach()).reshape({-1}), 0).values.item(); }

// Mean and unbiased variance of all elements.
std::pair<double, double> moments(const Tensor& x) {
  const std::vector<double> values = doubles(x);
  const auto count = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double v : values)
    mean += v / count;
  for (const double v : values)
    squares += (v - mean) * (v - mean);
  return {mean, squares / (count - 1)};
}

}  // namespace

TEST_CASE("GroupNorm normalises groups of channels, and its parameters are those of channels") {
  nn::GroupNorm norm(2, 4, {.dtype = kFloat64});
  const Tensor x = batch({3, 4, 5}, 1);
  const Tensor y = norm(x);
  for (int64_t n = 0; n < 3; ++n) {
    for (int64_t g = 0; g < 2; ++g) {
      const auto [mean, variance] = moments(y.select(0, n).narrow(0, 2 * g, 2));
      CHECK(mean == doctest::Approx(0));
      CHECK(variance * 9 / 10 == doctest::Approx(1).epsilon(1e-3));
    }
  }
  {
    const NoGradGuard no_grad;
    norm->weight.copy_(tensor<double>({1, 2, 3, 4}));
    norm->bias.copy_(tensor<double>({0, 0, 0, 5}));
  }
  const Tensor scaled = norm(x);
  CHECK(largest(scaled.select(1, 2) - y.select(1, 2) * 3.0) < 1e-12);
  CHECK(largest(scaled.select(1, 3) - (y.select(1, 3) * 4.0 + 5.0)) < 1e-12);
  // Evaluation mode gives the same result.
  norm->eval();
  CHECK(largest(norm(x) - scaled) == 0);
  CHECK(nn::GroupNorm(2, 4, {.affine = false})->parameters().empty());
}

TEST_CASE("InstanceNorm normalises each channel of each sample, of a batch and of a single sample") {
  const nn::InstanceNorm2d norm(3, {.affine = true, .dtype = kFloat64});
  const Tensor x = batch({2, 3, 4, 5}, 2);
  const Tensor y = norm(x);
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t c = 0; c < 3; ++c) {
      const auto [mean, variance] = moments(y.select(0, n).select(0, c));
      CHECK(mean == doctest::Approx(0));
      CHECK(variance * 19 / 20 == doctest::Approx(1).epsilon(1e-3));
    }
  }
  CHECK(largest(norm(x.select(0, 1)) - y.select(0, 1)) < 1e-14);
  CHECK(norm->parameters().size() == 2);
  CHECK(nn::InstanceNorm1d(3, {.dtype = kFloat64})(batch({2, 3, 4}, 1)).sizes() == Shape{2, 3, 4});
  CHECK(nn::InstanceNorm3d(3, {.dtype = kFloat64})(batch({2, 3, 2, 2, 2}, 1)).sizes() == Shape{2, 3, 2, 2, 2});
}

TEST_CASE("InstanceNorm tracks the mean over the samples of their statistics, and evaluates by it") {
  nn::InstanceNorm1d norm(2, {.momentum = 0.25, .track_running_stats = true, .dtype = kFloat64});
  const Tensor x = batch({3, 2, 6}, 3);
  const Tensor y = norm(x);
  std::vector<double> means, variances;
  for (int64_t c = 0; c < 2; ++c) {
    double mean = 0, variance = 0;
    for (int64_t n = 0; n < 3; ++n) {
      const auto [m, v] = moments(x.select(0, n).select(0, c));
      mean += m / 3;
      variance += v / 3;
    }
    means.push_back(0.25 * mean);
    variances.push_back(0.75 + 0.25 * variance);
  }
  for (size_t c = 0; c < 2; ++c) {
    CHECK(doubles(norm->running_mean)[c] == doctest::Approx(means[c]));
    CHECK(doubles(norm->running_var)[c] == doctest::Approx(variances[c]));
  }
  norm->eval();
  const Tensor fixed = norm(x);
  for (int64_t c = 0; c < 2; ++c) {
    const auto i = static_cast<size_t>(c);
    const Tensor expected = (x.select(1, c) - means[i]) / std::sqrt(variances[i] + 1e-5);
    CHECK(largest(fixed.select(1, c) - expected) < 1e-12);
  }
  CHECK(norm->running_mean.version() > 0);
}

TEST_CASE("BatchNorm3d is batch norm over everything behind the channels") {
  nn::BatchNorm3d norm(2, {.dtype = kFloat64});
  nn::BatchNorm1d flat(2, {.dtype = kFloat64});
  const Tensor x = batch({2, 2, 2, 3, 2}, 4);
  CHECK(largest(norm(x).reshape({2, 2, 12}) - flat(x.reshape({2, 2, 12}))) < 1e-14);
  CHECK_THROWS_WITH_AS(norm(x.select(0, 0)), doctest::Contains("BatchNorm3d: expected 5D"), ShapeError);
}

TEST_CASE("the layers that normalise samples print their options and refuse what does not fit") {
  CHECK(printed(nn::GroupNorm(2, 4)) == "GroupNorm(2, 4, eps=1e-05, affine=true)");
  CHECK(printed(nn::InstanceNorm2d(3)) ==
        "InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=false, track_running_stats=false)");
  CHECK_THROWS_WITH_AS(nn::GroupNorm(3, 4), doctest::Contains("divisible by num_groups, got 4 channels and 3 groups"),
                       ValueError);
  CHECK_THROWS_AS(nn::InstanceNorm1d(0), ValueError);
  CHECK_THROWS_WITH_AS(nn::InstanceNorm2d(3)(ones({3, 3})), doctest::Contains("expected 4D or 3D input"), ShapeError);
  CHECK_THROWS_WITH_AS(nn::InstanceNorm1d(3)(ones({2, 3, 1})),
                       doctest::Contains("Expected more than 1 spatial element when training"), ValueError);
  CHECK_THROWS_WITH_AS(group_norm(ones({1, 4, 1}), 4),
                       doctest::Contains("Expected more than 1 value per channel when training"), ValueError);
}

}  // namespace brigade::test::group_norm_test
