// GELU and the parametric activations, compared with their definitions in float64.
#include <brigade/core/view.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <near.h>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

namespace brigade::test::parametric_activation_test {
using namespace brigade::kernels;

namespace {

struct Row {
  const char* name;
  Activation kind;
  ActivationParams params;
  std::function<double(double)> y, slope;
};

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<Row> rows() {
  return {
      {"elu",
       Activation::Elu,
       {0.7, 1.5, 2},
       [](double x) { return x > 0 ? 1.5 * x : 0.7 * 1.5 * std::expm1(2 * x); },
       [](double x) { return x > 0 ? 1.5 : 0.7 * 1.5 * 2 * std::exp(2 * x); }},
      {"softplus",
       Activation::Softplus,
       {2, 3, 0},
       [](double x) { return 2 * x > 3 ? x : std::log1p(std::exp(2 * x)) / 2; },
       [](double x) { return 2 * x > 3 ? 1 : sigmoid_of(2 * x); }},
      {"hardtanh",
       Activation::Hardtanh,
       {-0.5, 2, 0},
       [](double x) { return std::min(std::max(x, -0.5), 2.0); },
       [](double x) { return x > -0.5 && x < 2 ? 1.0 : 0.0; }},
      {"hardsigmoid",
       Activation::Hardsigmoid,
       {},
       [](double x) { return std::min(std::max(x / 6 + 0.5, 0.0), 1.0); },
       [](double x) { return x > -3 && x < 3 ? 1.0 / 6 : 0.0; }},
      {"hardswish",
       Activation::Hardswish,
       {},
       [](double x) { return x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0); },
       [](double x) { return x <= -3 ? 0
                             : x < 3 ? x / 3 + 0.5
                                     : 1; }},
      {"mish",
       Activation::Mish,
       {},
       [](double x) { return x * std::tanh(std::log1p(std::exp(x))); },
       [](double x) {
         const double t = std::tanh(std::log1p(std::exp(x)));
         return t + x * (1 - t * t) * sigmoid_of(x);
       }},
      {"softsign",
       Activation::Softsign,
       {},
       [](double x) { return x / (1 + std::abs(x)); },
       [](double x) { return 1 / ((1 + std::abs(x)) * (1 + std::abs(x))); }},
      {"logsigmoid",
       Activation::LogSigmoid,
       {},
       [](double x) { return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x))); },
       [](double x) { return sigmoid_of(-x); }},
      {"softshrink",
       Activation::Softshrink,
       {0.5, 0, 0},
       [](double x) { return x > 0.5    ? x - 0.5
                             : x < -0.5 ? x + 0.5
                                        : 0; },
       [](double x) { return std::abs(x) <= 0.5 ? 0.0 : 1.0; }},
      {"hardshrink",
       Activation::Hardshrink,
       {0.5, 0, 0},
       [](double x) { return std::abs(x) <= 0.5 ? 0 : x; },
       [](double x) { return std::abs(x) <= 0.5 ? 0.0 : 1.0; }},
  };
}

// Sample points, including the kinks.
Tensor points(DType dtype) {
  std::vector<double> values{-3, 3, -0.5, 0.5, 2, 0, -0.0, 1.5, 30, -30, 80, -80};
  for (int i = -300; i <= 300; ++i)
    values.push_back(i * 0.0261);
  return cast(tensor(values, {static_cast<int64_t>(values.size())}), dtype);
}

}  // namespace

TEST_CASE("activations by kind and their derivatives, kinks included, in every floating dtype") {
  CHECK(rows().size() == kActivations);
  for (const Row& row : rows()) {
    CAPTURE(row.name);
    for (const auto& [dtype, tolerance] : std::vector<std::pair<DType, double>>{
             {kFloat64, 1e-14}, {kFloat32, 1e-6}, {kFloat16, 1e-3}, {kBFloat16, 8e-3}}) {
      CAPTURE(name(dtype));
      const Tensor x = points(dtype);
      const Tensor grad = full({x.numel()}, 1.5, dtype);
      const auto in = x.to_vector<double>();
      const auto out = parametric_activation(x, row.kind, row.params).to_vector<double>();
      const auto slopes = parametric_activation_backward(grad, x, row.kind, row.params).to_vector<double>();
      for (size_t i = 0; i < in.size(); ++i) {
        CAPTURE(in[i]);
        CHECK(std::abs(out[i] - row.y(in[i])) <= tolerance * std::max(1.0, std::abs(row.y(in[i]))));
        CHECK(std::abs(slopes[i] - 1.5 * row.slope(in[i])) <=
              2 * tolerance * std::max(1.0, std::abs(row.slope(in[i]))));
      }
    }
    CHECK(parametric_activation(zeros({0, 2}), row.kind, row.params).sizes() == Shape{0, 2});
    const Tensor nan = tensor<float>({std::nanf("")});
    CHECK(std::isnan(parametric_activation(nan, row.kind, row.params).to_vector<float>()[0]));
    const Tensor turned = view::transpose(tensor(std::vector<float>{-1, 2, 0.25F, 4, -5, 6}, {2, 3}), 0, 1);
    CHECK(parametric_activation(turned, row.kind, row.params).to_vector<float>() ==
          parametric_activation(contiguous(turned), row.kind, row.params).to_vector<float>());
    CHECK_THROWS_AS(parametric_activation(zeros({2}, kInt64), row.kind, row.params), DTypeError);
    CHECK_THROWS_AS(parametric_activation_backward(zeros({3}), zeros({2}), row.kind, row.params), ShapeError);
  }
}

TEST_CASE("gradients of a NaN are those of PyTorch's loops over vectors") {
  const Tensor nan = tensor<double>({std::nan("")});
  const Tensor one = ones({1}, kFloat64);
  const auto slope = [&](Activation kind, const ActivationParams& params) {
    return parametric_activation_backward(one, nan, kind, params).to_vector<double>()[0];
  };
  CHECK(std::isnan(slope(Activation::Elu, {1, 1, 1})));
  CHECK(slope(Activation::Hardtanh, {-1, 1, 0}) == 0);
  CHECK(slope(Activation::Hardsigmoid, {}) == 0);
  CHECK(std::isnan(slope(Activation::Hardswish, {})));
  CHECK(slope(Activation::Softshrink, {0.5, 0, 0}) == 0);
  CHECK(slope(Activation::Hardshrink, {0.5, 0, 0}) == 0);
  for (const Activation kind : {Activation::Mish, Activation::Softsign, Activation::LogSigmoid})
    CHECK(std::isnan(slope(kind, {})));
  CHECK(std::isnan(slope(Activation::Softplus, {1, 20, 0})));
}

TEST_CASE(
    "gelu in float32 and its derivative: absolute errors below 2e-7 and relative ones of positive numbers below 2 "
    "units") {
  std::vector<float> values;
  for (int i = -80000; i <= 80000; ++i)
    values.push_back(static_cast<float>(i) * 1e-4F);
  values.insert(values.end(), {1e-20F, -1e-20F, 1e-42F, 9.5F, -9.5F, 1e30F, -1e30F});
  const auto count = static_cast<int64_t>(values.size());
  const Tensor x = tensor(values, {count});
  const auto y = gelu(x, false).to_vector<double>();
  const auto slope = gelu_backward(full({count}, 1.0), x, false).to_vector<double>();
  double worst = 0, worst_relative = 0, worst_slope = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double v = static_cast<double>(values[i]);
    const double exact = 0.5 * v * std::erfc(-v / std::sqrt(2.0));
    const double density = std::exp(-0.5 * v * v) / std::sqrt(2 * 3.14159265358979323846);
    worst_slope = test::worse(worst_slope, std::abs(slope[i] - (0.5 * std::erfc(-v / std::sqrt(2.0)) + v * density)));
    const double off = std::abs(y[i] - exact);
    if (v > 0 && v < 1e20) worst_relative = test::worse(worst_relative, off / std::max(exact, 1e-36) / 0x1p-23);
    if (v < 2) worst = test::worse(worst, off);
  }
  MESSAGE("gelu: absolute " << worst << ", relative in units " << worst_relative << "; slope " << worst_slope);
  CHECK(worst <= 2e-7);
  CHECK(worst_relative <= 2);
  CHECK(worst_slope <= 2e-7);
  // The tail of a row gives the same values as the vectors, wherever it ends.
  for (const int64_t size : {0, 1, 7, 15, 16, 17, 33}) {
    const Tensor part = view::slice(x, 0, 3, 3 + size);
    const auto all = gelu(x, false).to_vector<float>();
    CHECK(gelu(part, false).to_vector<float>() == std::vector<float>(all.begin() + 3, all.begin() + 3 + size));
  }
  CHECK(std::isnan(gelu(tensor<float>({std::nanf("")}), false).to_vector<float>()[0]));
  CHECK(std::isnan(gelu_backward(ones({1}), tensor<float>({std::nanf("")}), false).to_vector<float>()[0]));
  CHECK(gelu(tensor<float>({INFINITY}), false).to_vector<float>()[0] == INFINITY);
  CHECK(std::isnan(gelu(tensor<float>({-INFINITY}), false).to_vector<float>()[0]));
  for (const float infinity : {INFINITY, -INFINITY})
    CHECK(std::isnan(gelu_backward(ones({1}), tensor<float>({infinity}), false).to_vector<float>()[0]));
  CHECK_THROWS_AS(gelu_backward(zeros({3}), zeros({2}), false), ShapeError);
}

}  // namespace brigade::test::parametric_activation_test
