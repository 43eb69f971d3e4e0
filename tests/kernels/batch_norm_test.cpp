// Batch norm, compared with its definition, in one piece and in parts.
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/normalization.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace brigade::test::batch_norm_test {
using namespace brigade::kernels;
using test::at;
using test::random;

TEST_CASE("batch norm: statistics, running averages, evaluation") {
  const Tensor x = random({4, 2, 3}, 1, kFloat64);
  const Tensor running_mean = zeros({2}, kFloat64);
  const Tensor running_var = ones({2}, kFloat64);
  const BatchNorm result = batch_norm(x, {}, {}, running_mean, running_var, true, 0.1, 0);
  for (int64_t c = 0; c < 2; ++c) {
    double mean = 0;
    double square = 0;
    double normed = 0;
    for (int64_t n = 0; n < 4; ++n) {
      for (int64_t i = 0; i < 3; ++i) {
        mean += at(x, (n * 2 + c) * 3 + i) / 12;
        normed += at(result.y, (n * 2 + c) * 3 + i);
      }
    }
    for (int64_t n = 0; n < 4; ++n) {
      for (int64_t i = 0; i < 3; ++i)
        square += std::pow(at(x, (n * 2 + c) * 3 + i) - mean, 2);
    }
    CHECK(std::abs(normed) < 1e-12);
    CHECK(at(running_mean, c) == doctest::Approx(0.1 * mean));
    CHECK(at(running_var, c) == doctest::Approx(0.9 + 0.1 * square / 11));
    CHECK(at(result.invstd, c) == doctest::Approx(1 / std::sqrt(square / 12)));
  }
  const Tensor y = batch_norm(x, full({2}, 2, kFloat64), full({2}, 1, kFloat64), full({2}, 0.5, kFloat64),
                              full({2}, 4, kFloat64), false, 0.1, 0)
                       .y;
  CHECK(at(y, 0) == doctest::Approx((at(x, 0) - 0.5) / 2 * 2 + 1));
  CHECK_THROWS_WITH_AS(batch_norm(zeros({1, 2}), {}, {}, {}, {}, true, 0.1, 0),
                       doctest::Contains("Expected more than 1 value per channel when training"), ValueError);
}

TEST_CASE("batch norm in parts is batch norm, bit for bit; an empty batch has moments and sums of zero") {
  for (const DType dtype : {kFloat64, kFloat32, kBFloat16}) {
    CAPTURE(name(dtype));
    const Tensor x = cast(random({4, 3, 5}, 1, kFloat64), dtype);
    const Tensor grad = cast(random({4, 3, 5}, 2, kFloat64), dtype);
    const Tensor weight = random({3}, 3, kFloat32);
    const Tensor bias = random({3}, 4, kFloat32);
    const Tensor mean = zeros({3}), mean_in_parts = zeros({3});
    const Tensor variance = ones({3}), variance_in_parts = ones({3});
    const BatchNorm whole = batch_norm(x, weight, bias, mean, variance, true, 0.1, 1e-5);
    const BatchNorm parts =
        batch_norm_apply(x, weight, bias, mean_in_parts, variance_in_parts, batch_norm_moments(x), 20, 0.1, 1e-5);
    CHECK(parts.y.to_vector<double>() == whole.y.to_vector<double>());
    CHECK(mean_in_parts.to_vector<double>() == mean.to_vector<double>());
    CHECK(variance_in_parts.to_vector<double>() == variance.to_vector<double>());
    const BatchNormGrads grads = batch_norm_backward(grad, x, weight, whole.mean, whole.invstd, true);
    const Tensor sums = batch_norm_gradient_sums(grad, x, parts.mean, parts.invstd);
    CHECK(batch_norm_input_gradient(grad, x, weight, parts.mean, parts.invstd, sums, 20).to_vector<double>() ==
          grads.x.to_vector<double>());
    for (int64_t c = 0; c < 3; ++c) {
      CHECK(static_cast<float>(at(sums, c)) == static_cast<float>(at(grads.bias, c)));
      CHECK(static_cast<float>(at(sums, 3 + c)) == static_cast<float>(at(grads.weight, c)));
    }
  }
  const Tensor none = zeros({0, 3});
  CHECK(batch_norm_moments(none).to_vector<double>() == std::vector<double>(6, 0));
  CHECK(batch_norm_gradient_sums(none, none, zeros({3}), ones({3})).to_vector<double>() == std::vector<double>(6, 0));
  CHECK(batch_norm_apply(none, {}, {}, {}, {}, ones({2, 3}, kFloat64), 5, 0.1, 1e-5).y.sizes() == Shape{0, 3});
  CHECK_THROWS_AS(batch_norm_apply(none, {}, {}, {}, {}, ones({2, 3}), 5, 0.1, 1e-5), ShapeError);
}

TEST_CASE("moments of batches together are those of one batch that holds them all") {
  // Channel 0 holds the values 1, 3, then 2, 4, 6; channel 1 holds 10, 10, then 0, 3, 0.
  const Tensor rows = view::as_strided(tensor<double>({2, 10, 2, 0, 2,  //
                                                       0, 0, 0, 0, 0,   // an empty batch
                                                       4, 1, 8, 6, 3}),
                                       {3, 5}, {5, 1}, 0);
  const std::vector<double> found = batch_norm_combine(rows).to_vector<double>();
  const std::vector<double> expected{3.2, 4.6, 14.8, 103.2};
  for (size_t i = 0; i < 4; ++i)
    CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-14));
  CHECK(batch_norm_combine(view::slice(rows, 0, 0, 2)).to_vector<double>() == std::vector<double>{2, 10, 2, 0});
  CHECK(batch_norm_combine(view::slice(rows, 0, 1, 2)).to_vector<double>() == std::vector<double>(4, 0));
  CHECK(batch_norm_combine(zeros({2, 1}, kFloat64)).sizes() == Shape{2, 0});
  CHECK_THROWS_AS(batch_norm_combine(zeros({2, 4}, kFloat64)), ShapeError);
  CHECK_THROWS_AS(batch_norm_combine(zeros({2, 5})), ShapeError);
}

}  // namespace brigade::test::batch_norm_test
