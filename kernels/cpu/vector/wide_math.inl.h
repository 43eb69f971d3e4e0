// Functions of float32 numbers that are computed in float64 vectors, so that rounding errors do not add up. Compiled
// for each instruction set.
//
// Some functions do not support all inputs (angles of many turns, powers of nonpositive numbers): they return a mask of
// the valid lanes, and the other lanes use the standard library.
#if defined(BRIGADE_KERNELS_CPU_VECTOR_WIDE_MATH) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_KERNELS_CPU_VECTOR_WIDE_MATH
#undef BRIGADE_KERNELS_CPU_VECTOR_WIDE_MATH
#else
#define BRIGADE_KERNELS_CPU_VECTOR_WIDE_MATH
#endif

#include <brigade/kernels/cpu/vector/math.inl.h>

#include <algorithm>
#include <numbers>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using Wide = hn::Vec<Doubles>;
using WideMask = hn::Mask<Doubles>;

// Results, and the lanes where they are valid.
struct Mostly {
  Wide y;
  WideMask is_right;
};
HWY_INLINE Wide results(Wide y) { return y; }
HWY_INLINE Wide results(const Mostly& found) { return found.y; }

// out[i] = f(in[0][i], ...) in float64; exact(in[0][i], ...) where f is not valid.
template <int inputs, class F, class Exact>
HWY_INLINE void each_wide(const float* const (&in)[inputs], float* out, int64_t n, F f, Exact exact) {
  const Doubles d;
  const hn::Rebind<float, Doubles> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr size_t kLanes = hn::MaxLanes(Doubles());
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t count = std::min(lanes, n - i);
    HWY_ALIGN float x[inputs][kLanes] = {};
    HWY_ALIGN float y[kLanes];
    for (int k = 0; k < inputs; ++k) {
      if (count == lanes) {
        hn::Store(hn::LoadU(narrow, in[k] + i), narrow, x[k]);
      } else {
        std::copy_n(in[k] + i, count, x[k]);
      }
    }
    const auto wide = [&](int k) HWY_ATTR { return hn::PromoteTo(d, hn::Load(narrow, x[k])); };
    const auto found = [&]() HWY_ATTR {
      if constexpr (inputs == 1) {
        return f(wide(0));
      } else {
        return f(wide(0), wide(1));
      }
    }();
    hn::Store(hn::DemoteTo(narrow, results(found)), narrow, y);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(found)>, Mostly>) {
      if (!hn::AllTrue(d, found.is_right)) {
        HWY_ALIGN double right[kLanes];
        hn::Store(hn::IfThenElseZero(found.is_right, all<Wide>(1)), d, right);
        for (int64_t k = 0; k < count; ++k) {
          if (right[k] != 0) continue;
          if constexpr (inputs == 1) y[k] = exact(x[0][k]);
          if constexpr (inputs == 2) y[k] = exact(x[0][k], x[1][k]);
        }
      }
    }
    std::copy_n(y, count, out + i);
  }
}

// Adding it rounds to an integer, which is then in the low bits.
inline constexpr double kRounder = 6755399441055744.0;  // 1.5 * 2^52

// exp to 1e-12 for |x| < 700.
HWY_INLINE Wide wide_exp(Wide x) {
  const hn::RebindToUnsigned<Doubles> du;
  const Wide rounder = all<Wide>(kRounder);
  const Wide shifted = hn::MulAdd(x, all<Wide>(std::numbers::log2e), rounder);
  const Wide n = shifted - rounder;
  const Wide r =
      hn::NegMulAdd(n, all<Wide>(1.90821492927058770002e-10), hn::NegMulAdd(n, all<Wide>(0.693147180369123816490), x));
  const Wide p = polynomial(r, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24,
                            1.0 / 6, 0.5, 1.0, 1.0);
  const auto exponent = hn::ShiftLeft<52>(hn::BitCast(du, shifted) + hn::Set(du, 1023));
  return p * hn::BitCast(Doubles(), exponent);
}

// log to 1e-12 for positive normal numbers: twice the atanh of f = (m - 1) / (m + 1).
HWY_INLINE Wide wide_log(Wide x) {
  const Doubles d;
  const hn::RebindToSigned<Doubles> di;
  const auto bits = hn::BitCast(di, x);
  // The bits of sqrt(1/2) mean exponent 0. The exponent is converted to double by an addition.
  const auto exponent = hn::ShiftRight<52>(bits - hn::Set(di, 0x3FE6A09E667F3BCD));
  const Wide m = hn::BitCast(d, bits - hn::ShiftLeft<52>(exponent));
  const Wide rounder = all<Wide>(kRounder);
  const Wide e = hn::BitCast(d, exponent + hn::BitCast(di, rounder)) - rounder;
  const Wide f = (m - all<Wide>(1)) / (m + all<Wide>(1));
  const Wide p = polynomial(f * f, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0);
  return hn::MulAdd(e, all<Wide>(std::numbers::ln2), f * p);
}

// --- angles of fewer than 2^20 quarter turns

// x = quarters * pi / 2 + rest, with pi / 2 in two parts, the first with 33 bits; Taylor polynomials of the rest.
struct Turned {
  Wide sine, cosine;  // of the rest, |rest| <= pi / 4
  WideMask is_odd;    // quarters
  Wide quarters;      // the count, in the low bits
  WideMask is_right;
};
HWY_INLINE WideMask has_bit(Wide bits, int64_t bit) {
  const hn::RebindToSigned<Doubles> di;
  return hn::RebindMask(Doubles(), hn::TestBit(hn::BitCast(di, bits), hn::Set(di, bit)));
}
HWY_INLINE Turned turned(Wide x) {
  const Wide rounder = all<Wide>(kRounder);
  const Wide shifted = hn::MulAdd(x, all<Wide>(2 * std::numbers::inv_pi), rounder);
  const Wide n = shifted - rounder;
  const Wide r =
      hn::NegMulAdd(n, all<Wide>(6.07710050650619224932e-11), hn::NegMulAdd(n, all<Wide>(1.57079632673412561417), x));
  const Wide s = r * r;
  const Wide sine = polynomial(s, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6);
  const Wide cosine = polynomial(s, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5, 1.0);
  return {hn::MulAdd(r * s, sine, r), cosine, has_bit(shifted, 1), shifted, hn::Lt(hn::Abs(x), all<Wide>(1.5e6))};
}
HWY_INLINE Wide negated_where(WideMask mask, Wide x) { return hn::IfThenElse(mask, hn::Neg(x), x); }
// `y`, or x (with its sign) where x is 0.
HWY_INLINE Wide or_zero(Wide x, Wide y) { return hn::IfThenElse(hn::Eq(x, hn::Zero(Doubles())), x, y); }

HWY_INLINE Mostly wide_sin(Wide x) {
  const Turned t = turned(x);
  const Wide y = hn::IfThenElse(t.is_odd, t.cosine, t.sine);
  return {or_zero(x, negated_where(has_bit(t.quarters, 2), y)), t.is_right};
}
HWY_INLINE Mostly wide_cos(Wide x) {
  const Turned t = turned(x);
  const hn::RebindToSigned<Doubles> di;
  const Wide next = hn::BitCast(Doubles(), hn::BitCast(di, t.quarters) + hn::Set(di, 1));
  const Wide y = hn::IfThenElse(t.is_odd, t.sine, t.cosine);
  return {negated_where(has_bit(next, 2), y), t.is_right};
}
HWY_INLINE Mostly wide_tan(Wide x) {
  const Turned t = turned(x);
  const Wide above = hn::IfThenElse(t.is_odd, hn::Neg(t.cosine), t.sine);
  return {or_zero(x, above / hn::IfThenElse(t.is_odd, t.sine, t.cosine)), t.is_right};
}

// --- inverse trigonometric functions

// atan(u) for u = 0 .. 1
HWY_INLINE Wide atan_near(Wide u) {
  return u * polynomial(u * u, 0.0010911067299443132, -0.00719936168157969, 0.022274302526865353, -0.04435742604725788,
                        0.06716101931072749, -0.0879876925412036, 0.11054500381719572, -0.14279159495818278,
                        0.1999960462539711, -0.33333323934927633, 0.9999999996282138);
}
// asin(sqrt s) / sqrt s for s = 0 .. 1/4
HWY_INLINE Wide asin_factor(Wide s) {
  return polynomial(s, 0.037885583199064, 0.014139490837462522, 0.03190080449024649, 0.044503086541186086,
                    0.0750060409921193, 0.16666656944852742, 1.0000000002546017);
}
HWY_INLINE Wide wide_atan(Wide x) {
  const Wide a = hn::Abs(x);
  const auto is_far = hn::Gt(a, all<Wide>(1));
  const Wide y = atan_near(hn::IfThenElse(is_far, all<Wide>(1) / a, a));
  return or_zero(x, hn::CopySign(hn::IfThenElse(is_far, all<Wide>(std::numbers::pi / 2) - y, y), x));
}
// For a > 0.5: asin(a) = pi / 2 - 2 asin(sqrt((1 - a) / 2)), and y is that inner asin.
struct ArcSine {
  WideMask is_far;
  Wide y;
};
HWY_INLINE ArcSine arc_sine(Wide v, Wide near) {
  const Wide a = hn::Abs(v);
  const auto is_far = hn::Gt(a, all<Wide>(0.5));
  const Wide s = hn::IfThenElse(is_far, (all<Wide>(1) - a) * all<Wide>(0.5), a * a);
  const Wide root = hn::IfThenElse(is_far, hn::Sqrt(s), near);
  return {is_far, root * asin_factor(s)};
}
HWY_INLINE Wide wide_asin(Wide x) {
  const ArcSine found = arc_sine(x, hn::Abs(x));
  const Wide far = hn::NegMulAdd(all<Wide>(2), found.y, all<Wide>(std::numbers::pi / 2));
  return hn::CopySign(hn::IfThenElse(found.is_far, far, found.y), x);
}
HWY_INLINE Wide wide_acos(Wide x) {
  const ArcSine found = arc_sine(x, x);
  const Wide twice = all<Wide>(2) * found.y;
  const Wide far = hn::IfThenElse(hn::Lt(x, hn::Zero(Doubles())), all<Wide>(std::numbers::pi) - twice, twice);
  return hn::IfThenElse(found.is_far, far, all<Wide>(std::numbers::pi / 2) - found.y);
}
// The angle of the point (x, y).
HWY_INLINE Wide wide_atan2(Wide y, Wide x) {
  const Wide a = hn::Abs(x);
  const Wide b = hn::Abs(y);
  const auto is_steep = hn::Gt(b, a);
  const Wide low = hn::IfThenElse(is_steep, a, b);
  const Wide high = hn::IfThenElse(is_steep, b, a);
  const Wide quotient = hn::IfThenElse(hn::Eq(low, high), all<Wide>(1), low / high);  // 1 for two infinities
  const Wide near = atan_near(hn::IfThenZeroElse(hn::Eq(high, hn::Zero(Doubles())), quotient));
  const Wide steep = hn::IfThenElse(is_steep, all<Wide>(std::numbers::pi / 2) - near, near);
  const auto is_left = hn::Lt(hn::CopySign(all<Wide>(1), x), hn::Zero(Doubles()));  // of 0, or -0
  const Wide angle = hn::IfThenElse(is_left, all<Wide>(std::numbers::pi) - steep, steep);
  return hn::IfThenElse(hn::Or(is_nan(x), is_nan(y)), x + y, hn::CopySign(angle, y));
}

HWY_INLINE Wide wide_erfc(Wide x) {
  const Wide a = hn::Min(hn::Abs(x), all<Wide>(10.2));  // the result is 0 beyond
  const Wide tail = all<Wide>(2) * wide_exp(hn::Neg(a * a)) * normal_tail_factor(a * all<Wide>(std::numbers::sqrt2));
  return or_nan(x, hn::IfThenElse(hn::Lt(x, hn::Zero(Doubles())), all<Wide>(2) - tail, tail));
}

// x^y for positive x and results that are normal numbers.
HWY_INLINE Mostly wide_pow(Wide x, Wide y) {
  const Wide exponent = y * wide_log(x);
  const auto is_usual =
      hn::And(hn::Ge(x, all<Wide>(1.17549435e-38)), hn::Le(x, all<Wide>(std::numeric_limits<float>::max())));
  return {wide_exp(exponent), hn::And(is_usual, hn::Lt(hn::Abs(exponent), all<Wide>(87)))};
}

// Remainders: for quotients below 2^28 the product with the divisor is exact. A quotient that was rounded up to the
// next integer gives a remainder with the wrong sign, which is corrected.
HWY_INLINE Mostly wide_fmod(Wide x, Wide y) {
  const Wide quotient = x / y;
  const Wide r = hn::NegMulAdd(hn::Trunc(quotient), y, x);
  const Wide rest = hn::IfThenElse(hn::Lt(r * x, hn::Zero(Doubles())), r + hn::CopySign(y, x), r);
  // Not valid for 0 / 0 and NaN.
  return {hn::CopySign(rest, x), hn::And(hn::Lt(hn::Abs(quotient), all<Wide>(0x1p28)),
                                         hn::Le(hn::Abs(y), all<Wide>(std::numeric_limits<float>::max())))};
}
HWY_INLINE Mostly wide_remainder(Wide x, Wide y) {
  const Mostly found = wide_fmod(x, y);
  const Wide zero = hn::Zero(Doubles());
  const auto differs = hn::And(hn::Ne(found.y, zero), hn::Lt(found.y * y, zero));
  return {hn::IfThenElse(differs, found.y + y, found.y), found.is_right};
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
