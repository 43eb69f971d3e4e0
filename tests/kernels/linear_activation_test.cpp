// Linear layers with an activation, on the CPU, against plain loops in double.
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/matmul.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace brigade::test::linear_activation_test {
using namespace brigade::kernels;
using test::random;

namespace {

// [rows, out], before the activation.
std::vector<double> sums(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const auto a = x.to_vector<double>();
  const auto w = weight.to_vector<double>();
  const auto b = bias.defined() ? bias.to_vector<double>() : std::vector<double>();
  const auto in = static_cast<size_t>(weight.sizes()[1]);
  const auto out = static_cast<size_t>(weight.sizes()[0]);
  std::vector<double> result;
  for (size_t row = 0; in > 0 && row < a.size() / in; ++row) {
    for (size_t j = 0; j < out; ++j) {
      double sum = b.empty() ? 0 : b[j];
      for (size_t i = 0; i < in; ++i)
        sum += a[row * in + i] * w[j * in + i];
      result.push_back(sum);
    }
  }
  return result;
}

double activated(FusedActivation activation, double x) {
  if (activation == FusedActivation::Relu) return std::max(x, 0.0);
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

double worst(const Tensor& found, const std::vector<double>& expected) {
  const auto values = found.to_vector<double>();
  REQUIRE(values.size() == expected.size());
  double result = 0;
  for (size_t i = 0; i < values.size(); ++i)
    result = std::max(result, std::abs(values[i] - expected[i]) / std::max(1.0, std::abs(expected[i])));
  return result;
}

}  // namespace

TEST_CASE("linear with ReLU and GELU, with and without a bias, leading dimensions kept") {
  for (const auto& [dtype, bound] : std::vector<std::pair<DType, double>>{
           {kFloat64, 1e-13}, {kFloat32, 1e-5}, {kFloat16, 4e-3}, {kBFloat16, 3e-2}}) {
    CAPTURE(name(dtype));
    for (const Shape& sizes : std::vector<Shape>{{7}, {1, 7}, {5, 7}, {2, 3, 7}}) {
      const Tensor x = random(sizes, 1, dtype);
      const Tensor weight = random({13, 7}, 2, dtype);
      for (const Tensor& bias : {random({13}, 3, dtype), Tensor()}) {
        const std::vector<double> before = sums(x, weight, bias);
        for (const FusedActivation activation : {FusedActivation::Relu, FusedActivation::GeluTanh}) {
          for (const bool keep : {false, true}) {
            const LinearActivation found = linear_activation(x, weight, bias, activation, keep);
            Shape expected_sizes = sizes;
            expected_sizes[expected_sizes.size() - 1] = 13;
            CHECK(found.y.sizes() == expected_sizes);
            CHECK(found.y.dtype() == dtype);
            std::vector<double> expected;
            for (const double sum : before)
              expected.push_back(activated(activation, sum));
            CHECK(worst(found.y, expected) <= bound);
            REQUIRE(found.pre.defined() == (keep && activation == FusedActivation::GeluTanh));
            if (!found.pre.defined()) continue;
            CHECK(found.pre.sizes() == expected_sizes);
            CHECK(worst(found.pre, before) <= bound);
          }
        }
      }
    }
  }
}

TEST_CASE("linear with an activation of nothing") {
  const Tensor bias = random({3}, 1, kFloat32);
  const Tensor none = linear_activation(zeros({2, 0}), zeros({3, 0}), bias, FusedActivation::Relu, false).y;
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t j = 0; j < 3; ++j) {
      CHECK(none.to_vector<double>()[static_cast<size_t>(row * 3 + j)] ==
            std::max(bias.to_vector<double>()[static_cast<size_t>(j)], 0.0));
    }
  }
  CHECK(linear_activation(zeros({0, 4}), zeros({3, 4}), bias, FusedActivation::GeluTanh, true).pre.sizes() ==
        Shape{0, 3});
}

TEST_CASE("linear with ReLU hands on a NaN on the CPU") {
  const Tensor x = full({1, 2}, std::numeric_limits<double>::quiet_NaN());
  CHECK(std::isnan(linear_activation(x, full({1, 2}, 1.0), {}, FusedActivation::Relu, false).y.to_vector<double>()[0]));
}

TEST_CASE("linear with an activation refuses what linear refuses") {
  const Tensor x = zeros({2, 3});
  const auto call = [&](const Tensor& weight, const Tensor& bias) {
    return linear_activation(x, weight, bias, FusedActivation::GeluTanh, false);
  };
  CHECK_THROWS_AS(call(zeros({3, 4}), {}), ShapeError);
  CHECK_THROWS_AS(call(zeros({4, 3}), zeros({3})), ShapeError);
  CHECK_THROWS_AS(call(zeros({4, 3}, kFloat64), {}), DTypeError);
}

}  // namespace brigade::test::linear_activation_test
