// Elementary functions, compared with the standard library in float64: float32 accuracy over the whole range, other
// dtypes, layouts, edge cases.
#include <brigade/core/view.h>
#include <brigade/kernels/common/elementwise_functors.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <near.h>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <functional>

namespace brigade::test::elementary_test {
using namespace brigade::kernels;

namespace {

double exactly(Function f, double x) {
  double y = 0;
  with_function(f, [&](auto functor) { y = functor(x); });
  return y;
}

// The error of `found` in units in the last place of float32; infinite if only one value is NaN or only one infinite.
double units_off(float found, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(exact) || std::isnan(found)) return std::isnan(exact) && std::isnan(found) ? 0 : INFINITY;
  if (std::isinf(rounded)) return found == rounded ? 0 : INFINITY;
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(static_cast<double>(found) - exact) / std::ldexp(1, std::max(exponent - 24, -149));
}

// Numbers of every magnitude, and evenly spaced ones in the range where the functions have their features.
Tensor floats_of_all_sizes() {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0xFFFFFFFFU - 100003; bits += 100003)
    values.push_back(std::bit_cast<float>(bits));
  for (int i = -40000; i <= 40000; ++i)
    values.push_back(static_cast<float>(i) * 1.7e-4F);
  for (const float v : {0.0F, -0.0F, 1.0F, -1.0F, 0.5F, -0.5F, 1e-45F, INFINITY, -INFINITY, 1e6F, 2e6F, 1e30F})
    values.push_back(v);
  return tensor(values, {static_cast<int64_t>(values.size())});
}

}  // namespace

TEST_CASE(
    "every elementary function in float32 is within 3 units of the last place, NaN and infinity where they belong") {
  const Tensor x = floats_of_all_sizes();
  const auto in = x.to_vector<float>();
  double worst_of_all = 0;
  for (int f = 0; f < kFunctions; ++f) {
    const auto out = function(x, Function(f)).to_vector<float>();
    double worst = 0;
    float where = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      const double off = units_off(out[i], exactly(Function(f), static_cast<double>(in[i])));
      if (off > worst) {
        worst = off;
        where = in[i];
      }
    }
    CHECK_MESSAGE(worst <= 3, "function " << f << " is off by " << worst << " units at " << where);
    worst_of_all = test::worse(worst_of_all, worst);
  }
  MESSAGE("worst error: " << worst_of_all << " units of the last place");
}

TEST_CASE("exp and log in float32 are within 2 units of the last place over dense and strided tensors") {
  const Tensor x = floats_of_all_sizes();
  const Tensor pairs = view::select(empty({x.numel(), 2}), 1, 1);
  copy(pairs, x);
  for (const Tensor& each : {x, pairs}) {
    const auto in = each.to_vector<float>();
    const auto exps = unary(each, UnaryOp::Exp).to_vector<float>();
    const auto logs = unary(each, UnaryOp::Log).to_vector<float>();
    double worst = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      worst = test::worse(worst, units_off(exps[i], std::exp(static_cast<double>(in[i]))));
      worst = test::worse(worst, units_off(logs[i], std::log(static_cast<double>(in[i]))));
    }
    CHECK(worst <= 2);
  }
}

TEST_CASE("elementary functions in the other floating dtypes, transposed and empty") {
  RandomGenerator generator(3);
  const Tensor x = rand({33, 5}, {kFloat64}, &generator);  // in the domain of every function
  for (int f = 0; f < kFunctions; ++f) {
    CAPTURE(f);
    for (const auto& [dtype, tolerance] : std::vector<std::pair<DType, double>>{
             {kFloat64, 1e-15}, {kFloat32, 1e-6}, {kFloat16, 1e-3}, {kBFloat16, 8e-3}}) {
      const Tensor low = view::transpose(cast(x, dtype), 0, 1);
      const Tensor y = function(low, Function(f));
      CHECK(y.dtype() == dtype);
      CHECK(y.sizes() == Shape{5, 33});
      const auto in = low.to_vector<double>();
      const auto out = y.to_vector<double>();
      for (size_t i = 0; i < in.size(); i += 7) {
        const double exact = exactly(Function(f), in[i]);
        CHECK(std::abs(out[i] - exact) <= tolerance * std::max(1.0, std::abs(exact)));
      }
    }
    CHECK(function(zeros({0, 3}), Function(f)).sizes() == Shape{0, 3});
    CHECK_THROWS_WITH_AS(function(zeros({2}, kInt64), Function(f)), doctest::Contains("expected a floating dtype"),
                         DTypeError);
  }
}

TEST_CASE("rounding goes to the even number from the middle, and keeps the sign of zero") {
  const Tensor x = tensor<float>({-2.5F, -1.5F, -0.5F, 0.5F, 1.5F, 2.5F, 2.6F});
  CHECK(function(x, Function::Round).to_vector<float>() == std::vector<float>{-2, -2, 0, 0, 2, 2, 3});
  CHECK(std::signbit(function(x, Function::Round).to_vector<float>()[2]));
  CHECK(function(x, Function::Floor).to_vector<float>() == std::vector<float>{-3, -2, -1, 0, 1, 2, 2});
  CHECK(function(x, Function::Ceil).to_vector<float>() == std::vector<float>{-2, -1, 0, 1, 2, 3, 3});
  CHECK(function(x, Function::Trunc).to_vector<float>() == std::vector<float>{-2, -1, 0, 0, 1, 2, 2});
}

}  // namespace brigade::test::elementary_test
