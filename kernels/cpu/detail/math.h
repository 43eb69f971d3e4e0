// Functions of float32 numbers without branches, so that the compiler vectorizes loops over them; float64 uses the
// standard library. vector/math.inl.h has more functions, for vectors.
//
// Unnamed polynomials are least-squares fits at the Chebyshev points of their interval, reweighted to minimize the
// largest relative error.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace brigade::kernels::cpu {

// exp: x = n ln 2 + r with |r| <= ln 2 / 2, then a Taylor polynomial of degree 7 in r (remainder below 6e-9) and the
// factor 2^n applied to the exponent bits in two halves, so that results near the ends of the range stay accurate. At
// most 2 ulp (tested).
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

// tanh: an odd Taylor polynomial near 0, where the quotient would cancel; (1 - e) / (1 + e) with e
// = exp(-2|x|) elsewhere.
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

// log: x = 2^e m with m in [sqrt(1/2), sqrt 2); log m = f - f^2/2 + f^3 p(f) with f = m - 1, and e
// ln 2 in two parts.
namespace detail {
struct Binary {
  float exponent, fraction;  // of x = 2^exponent * (1 + fraction)
};
inline Binary split(float x) noexcept {
  const bool is_small = x < 1.17549435e-38F;  // subnormal: the exponent bits are 0
  const float scaled = is_small ? x * 8388608.0F : x;
  const auto bits = std::bit_cast<uint32_t>(scaled);
  const int32_t exponent = static_cast<int32_t>(bits - 0x3F3504F3) >> 23;  // the bits of sqrt(1/2)
  const float m = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23));
  return {static_cast<float>(exponent) - (is_small ? 23.0F : 0.0F), m - 1.0F};
}
// log(1 + f) = f + rest
inline float log_rest(float f) noexcept {
  float p = 6.7466189e-2F;
  p = p * f - 1.16756466e-1F;
  p = p * f + 1.18881690e-1F;
  p = p * f - 1.24055903e-1F;
  p = p * f + 1.42195516e-1F;
  p = p * f - 1.66679958e-1F;
  p = p * f + 2.00021187e-1F;
  p = p * f - 2.50000096e-1F;
  p = p * f + 3.33333126e-1F;
  return f * f * (f * p - 0.5F);
}
// `y` for positive finite x, otherwise the special values of log.
inline float at_borders(float x, float y) noexcept {
  y = x == 0 ? -std::numeric_limits<float>::infinity() : y;
  y = x < 0 ? std::numeric_limits<float>::quiet_NaN() : y;
  return x <= std::numeric_limits<float>::max() ? y : x;  // infinity and NaN
}
}  // namespace detail
inline float log(float x) noexcept {
  const auto [e, f] = detail::split(x);
  const float y = e * 0.693359375F + (f + (detail::log_rest(f) - e * 2.12194440e-4F));
  return detail::at_borders(x, y);
}
inline double log(double x) noexcept { return std::log(x); }
// log1p: adds back the rounding error of 1 + x, to first order.
inline float log1p(float x) noexcept {
  const float u = 1.0F + x;
  const float lost = x - (u - 1.0F);
  const auto [e, f] = detail::split(u);
  const float y = e * 0.693359375F + (f + (detail::log_rest(f) - e * 2.12194440e-4F + lost / u));
  return x == 0 ? x : detail::at_borders(u, y);  // -0 gives -0
}
inline double log1p(double x) noexcept { return std::log1p(x); }

namespace detail {
// exp(r) - 1 for |r| <= ln 2 / 2
inline float expm1_near(float r) noexcept {
  float p = 1.98458772e-4F;
  p = p * r + 1.39406250e-3F;
  p = p * r + 8.33338937e-3F;
  p = p * r + 4.16663609e-2F;
  p = p * r + 1.66666664e-1F;
  p = p * r + 0.5F;
  return r + r * r * p;
}
// 2^n for n = -126 .. 127
inline float power_of_two(int32_t n) noexcept { return std::bit_cast<float>((n + 127) << 23); }
}  // namespace detail

// expm1 = 2^n (exp(r) - 1) + (2^n - 1), computed as twice its half, since 2^128 is not a float.
inline float expm1(float x) noexcept {
  const float clamped = x < -30.0F ? -30.0F : x > 89.0F ? 89.0F : x;
  const float n = (clamped * 1.44269504088896341F + 12582912.0F) - 12582912.0F;
  const float r = (clamped - n * 0.693145751953125F) - n * 1.42860682030941723e-6F;
  const float half = detail::power_of_two(static_cast<int32_t>(n - 1.0F));
  const float result = 2.0F * (half * detail::expm1_near(r) + (half - 0.5F));
  return x != x || x == 0 ? x : result;
}
inline double expm1(double x) noexcept { return std::expm1(x); }
// log(1 + x) for 0 <= x <= 1: with s = x / (2 + x), at most 1/3, it is 2 atanh(s), here the odd series to s^15. NaNs
// propagate.
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

// The functions of this file under the names that kernels/common expects.
struct Math {
  template <class C>
  static C exp(C x) {
    return cpu::exp(x);
  }
  template <class C>
  static C expm1(C x) {
    return cpu::expm1(x);
  }
  template <class C>
  static C log1p(C x) {
    return cpu::log1p(x);
  }
};

}  // namespace brigade::kernels::cpu
