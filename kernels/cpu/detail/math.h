// exp, log, log1p, tanh, sigmoid and erf for float32 without branches, so that the compiler vectorises the loops they
// stand in; for float64 the standard library's.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace brigade::kernels::cpu {

// exp: x = n ln 2 + r with |r| <= ln 2 / 2, then a Taylor polynomial of degree 7 in r (remainder below 6e-9) and the
// factor 2^n put into the exponent bits in two halves, so that results near the ends of the range stay right. At most 2
// ulp (tested).
inline float exp(float x) noexcept {
  const float clamped = x < -104.0F ? -104.0F : x > 89.0F ? 89.0F : x;
  const float shifted = clamped * 1.44269504088896341F + 12582912.0F;  // adding 1.5 * 2^23 rounds to a whole number
  const float n = shifted - 12582912.0F;
  const float r = (clamped - n * 0.693145751953125F) - n * 1.42860682030941723e-6F;
  float p = 1.98412698e-4F;
  p = p * r + 1.38888889e-3F;
  p = p * r + 8.33333333e-3F;
  p = p * r + 4.16666667e-2F;
  p = p * r + 1.66666667e-1F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const auto exponent = static_cast<int32_t>(n);
  const int32_t half = exponent >> 1;
  const float scale1 = std::bit_cast<float>((half + 127) << 23);
  const float scale2 = std::bit_cast<float>((exponent - half + 127) << 23);
  const float result = p * scale1 * scale2;
  return x != x ? x : result;
}
inline double exp(double x) noexcept { return std::exp(x); }

inline float sigmoid(float x) noexcept { return 1.0F / (1.0F + exp(-x)); }
inline double sigmoid(double x) noexcept { return 1.0 / (1.0 + std::exp(-x)); }

// tanh: an odd Taylor polynomial near 0, where the quotient would cancel; (1 - e) / (1 + e) with e = exp(-2|x|)
// elsewhere.
inline float tanh(float x) noexcept {
  const float a = std::fabs(x);
  const float e = exp(-2.0F * a);
  const float far = (1.0F - e) / (1.0F + e);
  const float s = x * x;
  const float near = a + a * s *
                             (-3.33333333e-1F +
                              s * (1.33333333e-1F + s * (-5.39682540e-2F + s * (2.18694885e-2F - s * 8.86323552e-3F))));
  return std::copysign(a < 0.25F ? near : far, x);
}
inline double tanh(double x) noexcept { return std::tanh(x); }

inline float erf(float x) noexcept { return std::erf(x); }
inline double erf(double x) noexcept { return std::erf(x); }

// log: x = m 2^e with m between sqrt(1/2) and sqrt(2); with s = (m - 1) / (m + 1) log(m) is 2 atanh(s), here its series
// to s^9 (remainder below 3e-10).
inline float log(float x) noexcept {
  const bool tiny = x < 0x1p-126F;
  const auto bits = std::bit_cast<int32_t>(tiny ? x * 0x1p23F : x);
  const int32_t e = (bits - 0x3f3504f3) >> 23;
  const float f = std::bit_cast<float>(bits - (e << 23)) - 1.0F;
  const float n = static_cast<float>(e) - (tiny ? 23.0F : 0.0F);
  const float s = f / (2.0F + f);
  const float q = s * s;
  float p = 1.0F / 9.0F;
  p = p * q + 1.0F / 7.0F;
  p = p * q + 1.0F / 5.0F;
  p = p * q + 1.0F / 3.0F;
  const float result = n * 0.693145751953125F + (n * 1.42860682030941723e-6F + (2.0F * s + 2.0F * s * q * p));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float special = x == 0.0F ? -kInfinity : x < 0.0F ? std::numeric_limits<float>::quiet_NaN() : x;
  return x > 0.0F && x < kInfinity ? result : special;
}
inline double log(double x) noexcept { return std::log(x); }

// log(1 + x): what the sum loses of x is added back.
inline float log1p(float x) noexcept {
  const float u = 1.0F + x;
  const float lost = x - (u - 1.0F);
  return log(u) + (lost == 0.0F || u == 0.0F ? 0.0F : lost / u);
}
inline double log1p(double x) noexcept { return std::log1p(x); }

// log(1 + x) for 0 <= x <= 1: with s = x / (2 + x), at most 1/3, it is 2 atanh(s), here the odd series to s^15. A NaN
// stays one.
inline float log1p_unit(float x) noexcept {
  const float s = x / (2.0F + x);
  const float q = s * s;
  float p = 1.0F / 15.0F;
  p = p * q + 1.0F / 13.0F;
  p = p * q + 1.0F / 11.0F;
  p = p * q + 1.0F / 9.0F;
  p = p * q + 1.0F / 7.0F;
  p = p * q + 1.0F / 5.0F;
  p = p * q + 1.0F / 3.0F;
  return 2.0F * s + 2.0F * s * q * p;
}
inline double log1p_unit(double x) noexcept { return std::log1p(x); }

}  // namespace brigade::kernels::cpu
