// pow, atan2, remainder and fmod against the standard library's in float64, and integers against plain loops.
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace brigade::test::binary_function_test {
using namespace brigade::kernels;

namespace {

double exactly(BinaryFunction f, double a, double b) {
  switch (f) {
    case BinaryFunction::Pow: return std::pow(a, b);
    case BinaryFunction::Atan2: return std::atan2(a, b);
    case BinaryFunction::Fmod: return std::fmod(a, b);
    case BinaryFunction::Remainder: break;
  }
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

constexpr BinaryFunction kAll[] = {BinaryFunction::Pow, BinaryFunction::Atan2, BinaryFunction::Remainder,
                                   BinaryFunction::Fmod};

bool agree(float found, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(found);
  if (found == rounded) return found != 0 || std::signbit(found) == std::signbit(rounded);
  return std::abs(static_cast<double>(found) - exact) <= std::abs(exact) * 0x1p-23;
}

Tensor grid_of(std::vector<float> values) { return tensor(values, {static_cast<int64_t>(values.size())}); }

}  // namespace

TEST_CASE("functions of two float32 numbers: ordinary and special ones, beside each other") {
  const Tensor values = grid_of({0.0F,     -0.0F,     1,     -1,   2,        -2,    0.5F,   -0.5F,   3,      -3,
                                 1.7F,     -1.7F,     1e-3F, 1e3F, -1e3F,    1e30F, 1e-30F, -1e30F,  1e-42F, 127.3F,
                                 INFINITY, -INFINITY, NAN,   4097, 1.0F / 3, 0.3F,  100,    -100.5F, 7,      -7});
  const int64_t n = values.numel();
  const Tensor rows = values;
  const Tensor columns = view::unsqueeze(values, 1);
  const auto list = values.to_vector<float>();
  for (const BinaryFunction f : kAll) {
    CAPTURE(static_cast<int>(f));
    const Tensor y = binary_function(columns, rows, f);
    CHECK(y.sizes() == Shape{n, n});
    const auto out = y.to_vector<float>();
    for (int64_t i = 0; i < n; ++i) {
      const auto row = binary_function_scalar(values, static_cast<double>(list[i]), f, true).to_vector<float>();
      const auto column = binary_function_scalar(values, static_cast<double>(list[i]), f, false).to_vector<float>();
      for (int64_t j = 0; j < n; ++j) {
        const double exact = exactly(f, static_cast<double>(list[i]), static_cast<double>(list[j]));
        const double turned = exactly(f, static_cast<double>(list[j]), static_cast<double>(list[i]));
        const bool right = agree(out[i * n + j], exact) && agree(row[j], exact) && agree(column[j], turned);
        CHECK_MESSAGE(right, list[i] << " and " << list[j] << " gave " << out[i * n + j] << " and " << row[j]
                                     << " instead of " << exact << ", " << column[j] << " instead of " << turned);
      }
    }
  }
}

TEST_CASE("functions of two numbers in float32: a long row is within one unit of the last place") {
  RandomGenerator generator(1);
  const Tensor a = binary_scalar(rand({5001}, {}, &generator), 9, BinaryOp::Mul, false);
  const Tensor b = binary_scalar(rand({5001}, {}, &generator), 3, BinaryOp::Sub, false);
  const auto x = a.to_vector<double>();
  const auto y = b.to_vector<double>();
  for (const BinaryFunction f : kAll) {
    const auto out = binary_function(a, b, f).to_vector<float>();
    int wrong = 0;
    for (size_t i = 0; i < x.size(); ++i)
      wrong += !agree(out[i], exactly(f, x[i], y[i]));
    CHECK(wrong == 0);
  }
}

TEST_CASE("functions of two numbers: other dtypes, broadcasting, empty tensors") {
  for (const auto& [dtype, tolerance] :
       std::vector<std::pair<DType, double>>{{kFloat64, 1e-15}, {kFloat16, 1e-3}, {kBFloat16, 8e-3}}) {
    const Tensor a = cast(tensor(std::vector<double>{0.5, 1.25, 2, 3.5, 0.75, 6}, {2, 3}), dtype);
    const Tensor b = cast(tensor(std::vector<double>{-1.5, 2}, {2, 1}), dtype);
    for (const BinaryFunction f : kAll) {
      const Tensor y = binary_function(a, b, f);
      CHECK(y.dtype() == dtype);
      const auto out = y.to_vector<double>();
      for (int64_t i = 0; i < 6; ++i) {
        const double exact = exactly(f, a.to_vector<double>()[i], b.to_vector<double>()[i / 3]);
        CHECK(std::abs(out[i] - exact) <= tolerance * std::max(1.0, std::abs(exact)));
      }
      CHECK(binary_function(zeros({0, 3}, dtype), zeros({3}, dtype), f).sizes() == Shape{0, 3});
    }
  }
  CHECK(binary_function(tensor<int64_t>({1}), tensor<float>({1.0F}), BinaryFunction::Pow).dtype() == kFloat32);
  CHECK_THROWS_AS(binary_function(zeros({2}), zeros({3}), BinaryFunction::Pow), ShapeError);
  CHECK_THROWS_WITH_AS(binary_function(zeros({2}, kBool), zeros({2}, kBool), BinaryFunction::Fmod),
                       doctest::Contains("fmod: not defined for bool"), DTypeError);
}

TEST_CASE("integers: powers wrap around, remainders have the sign of the divisor or of the dividend") {
  const Tensor a = tensor<int64_t>({7, -7, 7, -7, 0, 5, std::numeric_limits<int64_t>::min()});
  const Tensor b = tensor<int64_t>({3, 3, -3, -3, 4, 0, -1});
  CHECK(binary_function(a, b, BinaryFunction::Remainder).to_vector<int64_t>() ==
        std::vector<int64_t>{1, 2, -2, -1, 0, 0, 0});
  CHECK(binary_function(a, b, BinaryFunction::Fmod).to_vector<int64_t>() ==
        std::vector<int64_t>{1, -1, 1, -1, 0, 0, 0});
  CHECK(binary_function_scalar(a, 3, BinaryFunction::Remainder, false).to_vector<int64_t>()[1] == 2);
  CHECK(binary_function(tensor<int32_t>({2, -3, 0, 2, -1, 1}), tensor<int32_t>({10, 3, 0, -1, -3, -5}),
                        BinaryFunction::Pow)
            .to_vector<int>() == std::vector<int>{1024, -27, 1, 0, -1, 1});
  CHECK(binary_function(tensor<uint8_t>({2, 3}), tensor<uint8_t>({8, 2}), BinaryFunction::Pow).to_vector<int>() ==
        std::vector<int>{0, 9});
  CHECK(binary_function_scalar(tensor<int64_t>({4}), 0.5, BinaryFunction::Pow, false).to_vector<double>()[0] == 2);
  CHECK(binary_function(tensor<int64_t>({1}), tensor<int64_t>({1}), BinaryFunction::Atan2).dtype() == kFloat32);
  CHECK(binary_function_scalar(a, 1, BinaryFunction::Atan2, false).dtype() == kFloat32);
  for (const BinaryFunction f : {BinaryFunction::Pow, BinaryFunction::Remainder, BinaryFunction::Fmod})
    CHECK(binary_function_scalar(a, 2, f, false).dtype() == kInt64);
}

}  // namespace brigade::test::binary_function_test
