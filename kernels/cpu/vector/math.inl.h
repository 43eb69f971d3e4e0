// Elementary functions of float32 vectors. Compiled for each instruction set.
//
// Highway's own functions (contrib/math) cover parts of the float32 range (sin and cos up to 39,000, exp up to 104)
// with 4 ULP; these cover the whole range, with infinities, NaN and signs of zero as in the standard library, with 2
// ULP (exp, log) or 3 ULP (the others; tested). Unnamed polynomials are least-squares fits at the Chebyshev points of
// their interval, reweighted to minimize the largest relative error.
#if defined(BRIGADE_KERNELS_CPU_VECTOR_MATH) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_KERNELS_CPU_VECTOR_MATH
#undef BRIGADE_KERNELS_CPU_VECTOR_MATH
#else
#define BRIGADE_KERNELS_CPU_VECTOR_MATH
#endif

#include <hwy/highway.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class V>
using Number = hn::TFromV<V>;
template <class V>
using TagOf = hn::DFromV<V>;
// The same number in every lane.
template <class V>
HWY_INLINE V all(double number) {
  return hn::Set(TagOf<V>(), static_cast<Number<V>>(number));
}

// A polynomial: the coefficient of the highest power first.
template <class V>
HWY_INLINE V polynomial(V, double last) {
  return all<V>(last);
}
template <class V, class... Rest>
HWY_INLINE V next_powers(V x, V sum) {
  (void)x;
  return sum;
}
template <class V, class... Rest>
HWY_INLINE V next_powers(V x, V sum, double next, Rest... rest) {
  return next_powers(x, hn::MulAdd(sum, x, all<V>(next)), rest...);
}
template <class V, class... Rest>
HWY_INLINE V polynomial(V x, double highest, double next, Rest... rest) {
  return next_powers(x, all<V>(highest), next, rest...);
}

template <class V>
HWY_INLINE auto is_nan(V x) {
  return hn::IsNaN(x);
}
// y, or x where x is NaN.
template <class V>
HWY_INLINE V or_nan(V x, V y) {
  return hn::IfThenElse(is_nan(x), x, y);
}
// The nearest integer, for |x| < 2^22: adding 1.5 * 2^23 rounds.
template <class V>
HWY_INLINE V to_whole(V x) {
  const V rounder = all<V>(12582912.0);
  return (x + rounder) - rounder;
}
// x - n ln 2
template <class V>
HWY_INLINE V minus_ln2(V x, V n) {
  return hn::NegMulAdd(n, all<V>(1.42860682030941723e-6), hn::NegMulAdd(n, all<V>(0.693145751953125), x));
}
// 2^n for whole n = -126 .. 127
template <class V, class I>
HWY_INLINE V power_of_two(I n) {
  const hn::RebindToSigned<TagOf<V>> di;
  return hn::BitCast(TagOf<V>(), hn::ShiftLeft<23>(n + hn::Set(di, 127)));
}
// y * 2^n in two halves, so that results near the ends of the range stay accurate.
template <class V>
HWY_INLINE V scaled(V y, V n) {
  const auto exponent = hn::ConvertTo(hn::RebindToSigned<TagOf<V>>(), n);
  const auto half = hn::ShiftRight<1>(exponent);
  return y * power_of_two<V>(half) * power_of_two<V>(exponent - half);
}

// x = n ln 2 + r with |r| <= ln 2 / 2, then a Taylor polynomial of degree 7 in r (remainder below
// 6e-9).
template <class V>
HWY_INLINE V exp(V x) {
  const V clamped = hn::Max(hn::Min(x, all<V>(89)), all<V>(-104));
  const V n = to_whole(clamped * all<V>(1.44269504088896341));
  const V r = minus_ln2(clamped, n);
  return or_nan(
      x, scaled(polynomial(r, 1.98412698e-4, 1.38888889e-3, 8.33333333e-3, 4.16666667e-2, 1.66666667e-1, 0.5, 1.0, 1.0),
                n));
}

// exp(x) for x <= 0 (slightly above 0, from rounding, is fine), with fewer special cases: below -87.7 the result is 0
// instead of a subnormal number. Relative error below 4e-7; NaNs propagate.
template <class V>
HWY_INLINE V exp_nonpositive(V x) {
  const TagOf<V> d;
  const hn::RebindToUnsigned<TagOf<V>> du;
  const V to_exponent = all<V>(12582912.0 + 127.0);  // as in to_whole; the low bits are then the exponent of 2^n
  const V clamped = hn::IfThenElse(hn::Lt(x, all<V>(-88)), all<V>(-88), x);
  const V shifted = hn::MulAdd(clamped, all<V>(1.44269504088896341), to_exponent);
  const V r = minus_ln2(clamped, shifted - to_exponent);
  const V p = polynomial(r, 1.3984e-3, 8.3333e-3, 4.1666e-2, 1.66666667e-1, 0.5, 1.0, 1.0);
  return p * hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted)));
}

template <class V>
HWY_INLINE V sigmoid(V x) {
  return all<V>(1) / (all<V>(1) + exp(hn::Neg(x)));
}

// An odd Taylor polynomial near 0, where the quotient would cancel; (1 - e) / (1 + e) with e =
// exp(-2|x|) elsewhere.
template <class V>
HWY_INLINE V tanh(V x) {
  const V a = hn::Abs(x);
  const V e = exp(all<V>(-2) * a);
  const V far = (all<V>(1) - e) / (all<V>(1) + e);
  const V s = x * x;
  const V near =
      hn::MulAdd(a * s, polynomial(s, -8.86323552e-3, 2.18694885e-2, -5.39682540e-2, 1.33333333e-1, -3.33333333e-1), a);
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, all<V>(0.25)), near, far), x);
}

// x = 2^exponent * (1 + fraction), the fraction between sqrt(1/2) - 1 and sqrt(2) - 1.
template <class V>
struct Split {
  V exponent, fraction;
};
template <class V>
HWY_INLINE Split<V> split(V x) {
  const TagOf<V> d;
  const hn::RebindToSigned<TagOf<V>> di;
  const auto is_small = hn::Lt(x, all<V>(1.17549435e-38));  // subnormal: the exponent bits are 0
  const auto bits = hn::BitCast(di, hn::IfThenElse(is_small, x * all<V>(8388608), x));
  const auto exponent = hn::ShiftRight<23>(bits - hn::Set(di, 0x3F3504F3));  // the bits of sqrt(1/2)
  const V m = hn::BitCast(d, bits - hn::ShiftLeft<23>(exponent));
  return {hn::ConvertTo(d, exponent) - hn::IfThenElseZero(is_small, all<V>(23)), m - all<V>(1)};
}
// log(1 + f) = f + log_rest(f)
template <class V>
HWY_INLINE V log_rest(V f) {
  const V p = polynomial(f, 6.7466189e-2, -1.16756466e-1, 1.18881690e-1, -1.24055903e-1, 1.42195516e-1, -1.66679958e-1,
                         2.00021187e-1, -2.50000096e-1, 3.33333126e-1);
  return f * f * hn::MulSub(f, p, all<V>(0.5));
}
// `y` for positive finite x, otherwise the special values of log.
template <class V>
HWY_INLINE V at_borders(V x, V y) {
  const V zero = hn::Zero(TagOf<V>());
  y = hn::IfThenElse(hn::Eq(x, zero), all<V>(-std::numeric_limits<double>::infinity()), y);
  y = hn::IfThenElse(hn::Lt(x, zero), all<V>(std::numeric_limits<double>::quiet_NaN()), y);
  return hn::IfThenElse(hn::Le(x, all<V>(std::numeric_limits<float>::max())), y, x);  // infinity and NaN
}
// e ln 2 + f + rest, ln 2 in two parts.
template <class V>
HWY_INLINE V plus_ln2(V e, V f, V rest) {
  return hn::MulAdd(e, all<V>(0.693359375), f + hn::NegMulAdd(e, all<V>(2.12194440e-4), rest));
}
template <class V>
HWY_INLINE V log(V x) {
  const Split<V> s = split(x);
  return at_borders(x, plus_ln2(s.exponent, s.fraction, log_rest(s.fraction)));
}
template <class V>
HWY_INLINE V log2(V x) {
  const Split<V> s = split(x);
  const V rest = log_rest(s.fraction);
  // 1 / ln 2 = 1 + 0.4427
  const V less = hn::MulAdd(all<V>(0.442695041), s.fraction + rest, rest);
  return at_borders(x, s.exponent + (s.fraction + less));
}
template <class V>
HWY_INLINE V log10(V x) {
  const Split<V> s = split(x);
  const V part = all<V>(0.434294482) * (s.fraction + log_rest(s.fraction));
  const V y = hn::MulAdd(s.exponent, all<V>(0.30078125), hn::MulAdd(s.exponent, all<V>(2.48745664e-4), part));
  return at_borders(x, y);
}
// Adds back the rounding error of 1 + x, to first order.
template <class V>
HWY_INLINE V log1p(V x) {
  const V one = all<V>(1);
  const V u = one + x;
  const V lost = x - (u - one);
  const Split<V> s = split(u);
  const V y = plus_ln2(s.exponent, s.fraction, log_rest(s.fraction) + lost / u);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(TagOf<V>())), x, at_borders(u, y));  // -0 gives -0
}

// exp(r) - 1 for |r| <= ln 2 / 2
template <class V>
HWY_INLINE V expm1_near(V r) {
  const V p = polynomial(r, 1.98458772e-4, 1.39406250e-3, 8.33338937e-3, 4.16663609e-2, 1.66666664e-1, 0.5);
  return hn::MulAdd(r * r, p, r);
}
// 2^n (exp(r) - 1) + (2^n - 1), computed as twice its half, since 2^128 is not a float.
template <class V>
HWY_INLINE V expm1(V x) {
  const V clamped = hn::Max(hn::Min(x, all<V>(89)), all<V>(-30));
  const V n = to_whole(clamped * all<V>(1.44269504088896341));
  const V half = power_of_two<V>(hn::ConvertTo(hn::RebindToSigned<TagOf<V>>(), n - all<V>(1)));
  const V y = all<V>(2) * hn::MulAdd(half, expm1_near(minus_ln2(clamped, n)), half - all<V>(0.5));
  // Near 0 the result is x, with the sign of zero; halving would lose bits of subnormal numbers.
  return hn::IfThenElse(hn::Or(is_nan(x), hn::Lt(hn::Abs(x), all<V>(1e-10))), x, y);
}
// The integer part of x goes directly to the exponent.
template <class V>
HWY_INLINE V exp2(V x) {
  const V clamped = hn::Max(hn::Min(x, all<V>(129)), all<V>(-151));
  const V n = to_whole(clamped);
  return or_nan(x, scaled(all<V>(1) + expm1_near((clamped - n) * all<V>(0.693147181)), n));
}

// exp(a) / 2 for a >= 0, infinity where it overflows float32.
template <class V>
HWY_INLINE V half_exp(V a) {
  const auto is_far = hn::Ge(a, all<V>(88));
  const V e = exp(hn::IfThenElse(is_far, a * all<V>(0.5), a));
  return e * all<V>(0.5) * hn::IfThenElse(is_far, e, all<V>(1));
}
template <class V>
HWY_INLINE V sinh(V x) {
  const V a = hn::Abs(x);
  const V e = half_exp(a);
  const V s = a * a;
  const V near = hn::MulAdd(a * s, polynomial(s, 2.75573192e-6, 1.98412698e-4, 8.33333333e-3, 1.66666667e-1), a);
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, all<V>(1)), near, e - all<V>(0.25) / e), x);
}
template <class V>
HWY_INLINE V cosh(V x) {
  const V e = half_exp(hn::Abs(x));
  return e + all<V>(0.25) / e;
}

// The upper tail of the normal distribution is exp(-z^2 / 2) times this, for z = 0 .. 14.4 (a fit).
template <class V>
HWY_INLINE V normal_tail_factor(V z) {
  const V p = polynomial(z, 0.004108706838414039, 0.040582264324062124, 0.18308434733055268, 0.43809199941472,
                         0.5000000029085987);
  const V q = polynomial(z, 0.01029887930495136, 0.10173116660517663, 0.46907243573779617, 1.2018777522262338,
                         1.6740689741885375, 1.0);
  return p / q;
}
// A polynomial below 1, one minus the tail above.
template <class V>
HWY_INLINE V erf(V x) {
  const V a = hn::Abs(x);
  const V p = polynomial(a * a, 7.85385922e-5, -8.01019298e-4, 5.18832761e-3, -2.68538119e-2, 1.12835851e-1,
                         -3.76126258e-1, 1.28379166e-1);
  const V near = hn::MulAdd(a, p, a);  // the term 1 * a is exact
  const V z = hn::Min(a, all<V>(6));
  const V far = hn::NegMulAdd(all<V>(2) * exp(hn::Neg(z * z)), normal_tail_factor(z * all<V>(1.41421356)), all<V>(1));
  return or_nan(x, hn::CopySign(hn::IfThenElse(hn::Lt(a, all<V>(1)), near, far), x));
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
