// The emulation's half types: conversions are exact for all 65536 values, and right for the values in between.
#include <doctest/doctest.h>
#include <simt/device.h>

#include <cmath>
#include <limits>

namespace {

struct Float16 {
  using Type = __half;
  static constexpr int kFraction = 10;
  static constexpr int kBias = 15;
  static unsigned short bits(__half x) { return __half_as_ushort(x); }
  static __half from_bits(unsigned short bits) { return __ushort_as_half(bits); }
  static __half from_double(double x) { return __double2half(x); }
  static __half from_float(float x) { return __float2half(x); }
  static float to_float(__half x) { return __half2float(x); }
};

struct BFloat16 {
  using Type = __nv_bfloat16;
  static constexpr int kFraction = 7;
  static constexpr int kBias = 127;
  static unsigned short bits(__nv_bfloat16 x) { return __bfloat16_as_ushort(x); }
  static __nv_bfloat16 from_bits(unsigned short bits) { return __ushort_as_bfloat16(bits); }
  static __nv_bfloat16 from_double(double x) { return __double2bfloat16(x); }
  static __nv_bfloat16 from_float(float x) { return __float2bfloat16(x); }
  static float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
};

// The value of the bits without the sign, by the IEEE 754 definition. The bit pattern of infinity gets the next power
// of two, the value from which numbers round to infinity.
template <class F>
double value_of(unsigned short bits) {
  const int field = bits >> F::kFraction;
  const double fraction = std::ldexp(bits & ((1 << F::kFraction) - 1), -F::kFraction);
  return field == 0 ? std::ldexp(fraction, 1 - F::kBias) : std::ldexp(1 + fraction, field - F::kBias);
}

template <class F>
constexpr unsigned short kInfinity = static_cast<unsigned short>((2 * F::kBias + 1) << F::kFraction);

// Neighbors of x in its own type.
template <class T>
T below(T x) {
  return std::nextafter(x, -std::numeric_limits<T>::infinity());
}
template <class T>
T above(T x) {
  return std::nextafter(x, std::numeric_limits<T>::infinity());
}

}  // namespace

TEST_CASE_TEMPLATE("the bits of a half are its value as IEEE 754 defines it", F, Float16, BFloat16) {
  int wrong = 0;
  for (int bits = 0; bits < kInfinity<F>; ++bits) {
    const auto pattern = static_cast<unsigned short>(bits);
    const auto negative = static_cast<unsigned short>(bits | 0x8000);
    const double expected = value_of<F>(pattern);
    wrong += static_cast<double>(F::to_float(F::from_bits(pattern))) != expected;
    wrong += static_cast<double>(F::to_float(F::from_bits(negative))) != -expected;
    wrong += std::signbit(F::to_float(F::from_bits(negative))) != true;
  }
  CHECK(wrong == 0);
  CHECK(F::to_float(F::from_bits(kInfinity<F>)) == std::numeric_limits<float>::infinity());
  CHECK(F::to_float(F::from_bits(kInfinity<F> | 0x8000)) == -std::numeric_limits<float>::infinity());
  for (int bits = kInfinity<F> + 1; bits < 0x8000; ++bits)
    wrong += !std::isnan(F::to_float(F::from_bits(static_cast<unsigned short>(bits))));
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("numbers round to the nearest half, from half-way to the even one", F, Float16, BFloat16) {
  int wrong = 0;
  const auto expect = [&](double value, unsigned short bits) {
    wrong += F::bits(F::from_double(value)) != bits;
    wrong += F::bits(F::from_double(-value)) != (bits | 0x8000);
  };
  const auto expect_of_float = [&](float value, unsigned short bits) {
    wrong += F::bits(F::from_float(value)) != bits;
    wrong += F::bits(F::from_float(-value)) != (bits | 0x8000);
  };
  for (int bits = 0; bits < kInfinity<F>; ++bits) {
    const auto here = static_cast<unsigned short>(bits);
    const auto next = static_cast<unsigned short>(bits + 1);
    const auto even = (bits & 1) == 0 ? here : next;
    const double middle = (value_of<F>(here) + value_of<F>(next)) / 2;
    expect(value_of<F>(here), here);
    expect(below(middle), here);
    expect(middle, even);
    expect(above(middle), next);
    // A float represents the same values, except half of the smallest bfloat16.
    expect_of_float(static_cast<float>(value_of<F>(here)), here);
    const auto middle_of_float = static_cast<float>(middle);
    REQUIRE(static_cast<double>(middle_of_float) == middle);
    expect_of_float(below(middle_of_float), here);
    expect_of_float(middle_of_float, even);
    expect_of_float(above(middle_of_float), next);
  }
  expect(std::numeric_limits<double>::denorm_min(), 0);
  expect(std::numeric_limits<double>::max(), kInfinity<F>);
  expect(std::numeric_limits<double>::infinity(), kInfinity<F>);
  expect_of_float(std::numeric_limits<float>::infinity(), kInfinity<F>);
  CHECK(wrong == 0);
  for (const double nan : {std::nan(""), -std::nan("1")}) {
    CHECK(F::bits(F::from_double(nan)) == 0x7fff);
    CHECK(F::bits(F::from_float(static_cast<float>(nan))) == 0x7fff);
  }
}

TEST_CASE("the largest and smallest float16, and what is just too large or too small") {
  struct Case {
    float value;
    unsigned short bits;
  };
  for (const Case& c : {Case{65504.0f, 0x7bff},
                        {65519.996f, 0x7bff},
                        {65520.0f, 0x7c00},
                        {0x1p-14f, 0x0400},
                        {0x1p-24f, 0x0001},
                        {0x1p-25f, 0x0000},
                        {0x1.000002p-25f, 0x0001},
                        {-0.0f, 0x8000}}) {
    CAPTURE(c.value);
    CHECK(__half_as_ushort(__float2half_rn(c.value)) == c.bits);
  }
}

TEST_CASE_TEMPLATE("arithmetic of halves rounds once", F, Float16, BFloat16) {
  using T = typename F::Type;
  const float ulp = std::ldexp(1.0f, -F::kFraction);
  const T one = 1, next = 1 + ulp, half_ulp = ulp / 2;
  CHECK(F::to_float(one + half_ulp) == 1);
  CHECK(F::to_float(next + half_ulp) == 1 + 2 * ulp);
  CHECK(F::to_float(next * next) == 1 + 2 * ulp);
  CHECK(F::to_float(one / T(3)) == F::to_float(F::from_double(1.0 / 3)));
  CHECK(F::to_float(one - half_ulp) == 1 - ulp / 2);
  CHECK(F::to_float(-one) == -1);
  CHECK(one < next);
  CHECK_FALSE(one == next);
  const T nan = F::from_bits(0x7fff);
  CHECK_FALSE(nan == nan);
  CHECK(nan != nan);
  CHECK_FALSE(nan < one);
  CHECK_FALSE(nan >= one);
}

TEST_CASE("multiply-add of bfloat16 sees an addend far below the product") {
  // Both products are halfway between two numbers. The addend, 100 powers of two below and beyond the precision of a
  // double that holds the product, decides the rounding.
  struct Case {
    float x, y, alone, plus, minus;
  };
  for (const Case& c : {Case{1.5f, 1 + 0x1p-7f, 194 * 0x1p-7f, 194 * 0x1p-7f, 193 * 0x1p-7f},
                        {1.5f, 1 + 3 * 0x1p-7f, 196 * 0x1p-7f, 197 * 0x1p-7f, 196 * 0x1p-7f}}) {
    const __nv_bfloat16 x = c.x, y = c.y, tiny = 0x1p-100f;
    CHECK(__bfloat162float(__hfma(x, y, __nv_bfloat16(0.0f))) == c.alone);
    CHECK(__bfloat162float(__hfma(x, y, tiny)) == c.plus);
    CHECK(__bfloat162float(__hfma(x, y, -tiny)) == c.minus);
    CHECK(__bfloat162float(__hfma(-x, y, tiny)) == -c.minus);
  }
  const __nv_bfloat16 x = 1.5f;
  CHECK(std::isinf(__bfloat162float(__hfma(__nv_bfloat16(0x1p127f), __nv_bfloat16(2.0f), x))));
  CHECK(std::isnan(__bfloat162float(__hfma(__ushort_as_bfloat16(0x7f80), __nv_bfloat16(0.0f), x))));
}
