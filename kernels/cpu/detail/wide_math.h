// Functions of float32 numbers that are computed in float64 inside, where one rounding is left of many, without
// branches: loops over them are vectorised, at half the width. Those of float64 are the standard library's.
//
// Some have inputs that the short way does not serve (angles of many turns, powers of what is not positive): then
// `is_short` is false, and the standard library's function is right.
#pragma once

#include <brigade/kernels/cpu/detail/math.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace brigade::kernels::cpu {

namespace detail {

// Adding it rounds to a whole number, which is then in the low bits.
inline constexpr double kRounder = 6755399441055744.0;  // 1.5 * 2^52

// exp to 1e-12 for |x| < 700.
inline double wide_exp(double x) noexcept {
  const double shifted = x * std::numbers::log2e + kRounder;
  const double n = shifted - kRounder;
  const double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  double p = 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1;
  p = p * r + 1;
  return p * std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) << 52) + (uint64_t{1023} << 52));
}

// log to 1e-12 for positive normal numbers: twice the atanh of f = (m - 1) / (m + 1).
inline double wide_log(double x) noexcept {
  const auto bits = std::bit_cast<uint64_t>(x);
  // The exponent, by a sum instead of a conversion: the bits of sqrt(1/2) stand for 0.
  const auto exponent = static_cast<uint64_t>(static_cast<int64_t>(bits - 0x3FE6A09E667F3BCD) >> 52);
  const double m = std::bit_cast<double>(bits - (exponent << 52));
  const double e = std::bit_cast<double>(exponent + std::bit_cast<uint64_t>(kRounder)) - kRounder;
  const double f = (m - 1) / (m + 1);
  const double s = f * f;
  double p = 2.0 / 13;
  p = p * s + 2.0 / 11;
  p = p * s + 2.0 / 9;
  p = p * s + 2.0 / 7;
  p = p * s + 2.0 / 5;
  p = p * s + 2.0 / 3;
  p = p * s + 2;
  return e * std::numbers::ln2 + f * p;
}

struct Turned {
  double sine, cosine;  // of the rest, |rest| <= pi / 4
  int64_t quarters;
};
// x = quarters * pi / 2 + rest, pi / 2 in two parts of which the first has 33 bits; Taylor polynomials of the rest.
inline Turned turned(double x) noexcept {
  const double shifted = x * (2 * std::numbers::inv_pi) + kRounder;
  const double n = shifted - kRounder;
  const double r = (x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11;
  const double s = r * r;
  double sine = 1.0 / 362880;
  sine = sine * s - 1.0 / 5040;
  sine = sine * s + 1.0 / 120;
  sine = sine * s - 1.0 / 6;
  double cosine = -1.0 / 3628800;
  cosine = cosine * s + 1.0 / 40320;
  cosine = cosine * s - 1.0 / 720;
  cosine = cosine * s + 1.0 / 24;
  cosine = cosine * s - 0.5;
  return {r + r * s * sine, 1 + s * cosine, std::bit_cast<int64_t>(shifted)};
}

// atan(u) for u = 0 .. 1
inline double atan_near(double u) noexcept {
  const double s = u * u;
  double p = 0.0010911067299443132;
  p = p * s - 0.00719936168157969;
  p = p * s + 0.022274302526865353;
  p = p * s - 0.04435742604725788;
  p = p * s + 0.06716101931072749;
  p = p * s - 0.0879876925412036;
  p = p * s + 0.11054500381719572;
  p = p * s - 0.14279159495818278;
  p = p * s + 0.1999960462539711;
  p = p * s - 0.33333323934927633;
  p = p * s + 0.9999999996282138;
  return u * p;
}

// asin(sqrt s) / sqrt s for s = 0 .. 1/4
inline double asin_factor(double s) noexcept {
  double p = 0.037885583199064;
  p = p * s + 0.014139490837462522;
  p = p * s + 0.03190080449024649;
  p = p * s + 0.044503086541186086;
  p = p * s + 0.0750060409921193;
  p = p * s + 0.16666656944852742;
  p = p * s + 1.0000000002546017;
  return p;
}

}  // namespace detail

// --- angles of fewer than 2^20 quarter turns
struct Sin {
  static bool is_short(float x) noexcept { return std::fabs(x) < 1.5e6F; }
  float operator()(float x) const noexcept {
    const auto [sine, cosine, quarters] = detail::turned(static_cast<double>(x));
    const double y = quarters & 1 ? cosine : sine;
    return x == 0 ? x : static_cast<float>(quarters & 2 ? -y : y);
  }
  template <class C>
  static C exact(C x) noexcept {
    return std::sin(x);
  }
};
struct Cos {
  static bool is_short(float x) noexcept { return Sin::is_short(x); }
  float operator()(float x) const noexcept {
    const auto [sine, cosine, quarters] = detail::turned(static_cast<double>(x));
    const double y = quarters & 1 ? sine : cosine;
    return static_cast<float>((quarters + 1) & 2 ? -y : y);
  }
  template <class C>
  static C exact(C x) noexcept {
    return std::cos(x);
  }
};
struct Tan {
  static bool is_short(float x) noexcept { return Sin::is_short(x); }
  float operator()(float x) const noexcept {
    const auto [sine, cosine, quarters] = detail::turned(static_cast<double>(x));
    const bool odd = quarters & 1;
    const double y = (odd ? -cosine : sine) / (odd ? sine : cosine);
    return x == 0 ? x : static_cast<float>(y);
  }
  template <class C>
  static C exact(C x) noexcept {
    return std::tan(x);
  }
};

// --- their inverses
inline float atan(float x) noexcept {
  const double a = std::fabs(static_cast<double>(x));
  const double y = detail::atan_near(a > 1 ? 1 / a : a);
  return x == 0 ? x : static_cast<float>(std::copysign(a > 1 ? std::numbers::pi / 2 - y : y, static_cast<double>(x)));
}
inline double atan(double x) noexcept { return std::atan(x); }
inline float asin(float x) noexcept {
  const double a = std::fabs(static_cast<double>(x));
  const bool is_far = a > 0.5;
  const double s = is_far ? (1 - a) * 0.5 : a * a;
  const double root = is_far ? std::sqrt(s) : a;
  const double y = root * detail::asin_factor(s);
  return static_cast<float>(std::copysign(is_far ? std::numbers::pi / 2 - 2 * y : y, static_cast<double>(x)));
}
inline double asin(double x) noexcept { return std::asin(x); }
inline float acos(float x) noexcept {
  const double v = static_cast<double>(x);
  const double a = std::fabs(v);
  const bool is_far = a > 0.5;
  const double s = is_far ? (1 - a) * 0.5 : a * a;
  const double root = is_far ? std::sqrt(s) : v;
  const double y = root * detail::asin_factor(s);
  const double far = v < 0 ? std::numbers::pi - 2 * y : 2 * y;
  return static_cast<float>(is_far ? far : std::numbers::pi / 2 - y);
}
inline double acos(double x) noexcept { return std::acos(x); }
// The angle of the point (x, y).
struct Atan2 {
  static bool is_short(float, float) noexcept { return true; }
  float operator()(float y, float x) const noexcept {
    const double a = std::fabs(static_cast<double>(x));
    const double b = std::fabs(static_cast<double>(y));
    const double low = a < b ? a : b;
    const double high = a < b ? b : a;
    const double quotient = low / high;
    const double near = detail::atan_near(high == 0 ? 0 : low == high ? 1 : quotient);  // of two infinities: 1
    const double steep = b > a ? std::numbers::pi / 2 - near : near;
    const double angle = std::bit_cast<int32_t>(x) < 0 ? std::numbers::pi - steep : steep;  // left of 0, or -0
    const float result = static_cast<float>(std::copysign(angle, static_cast<double>(y)));
    return x != x || y != y ? x + y : result;
  }
  template <class C>
  static C exact(C y, C x) noexcept {
    return std::atan2(y, x);
  }
};

inline float erfc(float x) noexcept {
  const double v = static_cast<double>(x);
  const double a = std::fabs(v) < 10.2 ? std::fabs(v) : 10.2;  // beyond it is 0
  const double tail = 2 * detail::wide_exp(-a * a) * normal_tail_factor(a * std::numbers::sqrt2);
  return x != x ? x : static_cast<float>(v < 0 ? 2 - tail : tail);
}
inline double erfc(double x) noexcept { return std::erfc(x); }

// x^y for positive x and results that are normal numbers; others are std::pow's.
struct Pow {
  static bool is_short(float x, float y) noexcept {
    const double exponent = static_cast<double>(y) * detail::wide_log(static_cast<double>(x));
    // Without branches: all three are computed.
    return (x >= 1.17549435e-38F) & (x <= std::numeric_limits<float>::max()) & (std::fabs(exponent) < 87);
  }
  float operator()(float x, float y) const noexcept {
    return static_cast<float>(detail::wide_exp(static_cast<double>(y) * detail::wide_log(static_cast<double>(x))));
  }
  template <class C>
  static C exact(C x, C y) noexcept {
    return std::pow(x, y);
  }
};

// Remainders: of quotients below 2^28 the product with the divisor is exact. A quotient that was rounded up to the next
// whole number leaves a rest of the other sign.
struct Fmod {
  static bool is_short(float x, float y) noexcept {
    // Neither for 0 / 0 nor for NaN.
    return (std::fabs(static_cast<double>(x) / static_cast<double>(y)) < 0x1p28) &
           (std::fabs(y) <= std::numeric_limits<float>::max());
  }
  static double rest(double x, double y) noexcept {
    const double r = x - std::trunc(x / y) * y;
    return r * x < 0 ? r + std::copysign(y, x) : r;
  }
  float operator()(float x, float y) const noexcept {
    const double r = rest(static_cast<double>(x), static_cast<double>(y));
    return static_cast<float>(std::copysign(r, static_cast<double>(x)));
  }
  template <class C>
  static C exact(C x, C y) noexcept {
    return std::fmod(x, y);
  }
};
struct Remainder {
  static bool is_short(float x, float y) noexcept { return Fmod::is_short(x, y); }
  float operator()(float x, float y) const noexcept {
    const float r = Fmod{}(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
  }
  template <class C>
  static C exact(C x, C y) noexcept {
    const C r = std::fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
  }
};

}  // namespace brigade::kernels::cpu
