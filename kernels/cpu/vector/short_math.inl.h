// Reduced-precision functions of float32 vectors, for results that are rounded to float16 or bfloat16 afterwards:
// relative errors of about 2^-17, so that fewer than one in a hundred halves is not rounded to the nearest half, but to
// its neighbor (tested for every half). Compiled for each instruction set. Polynomials and quotients are fits as in
// math.inl.h.
#if defined(BRIGADE_KERNELS_CPU_VECTOR_SHORT_MATH) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_KERNELS_CPU_VECTOR_SHORT_MATH
#undef BRIGADE_KERNELS_CPU_VECTOR_SHORT_MATH
#else
#define BRIGADE_KERNELS_CPU_VECTOR_SHORT_MATH
#endif

#include <brigade/kernels/cpu/vector/math.inl.h>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// 2^t for t between -1/2 and 1/2; exactly 1 at 0, so that the logarithm of a sum near 1 is accurate.
template <class V>
HWY_INLINE V short_power_of_part(V t) {
  return polynomial(t, 9.58286e-3, 5.590644e-2, 2.4024099e-1, 6.9312419e-1, 1.0);
}

// 2^(x * factor), if the result is a normal number; NaNs propagate. Relative error 2^-18 for x * factor below 2^7,
// which is itself rounded to float32.
template <class V>
HWY_INLINE V short_power(V x, double factor) {
  const TagOf<V> d;
  const hn::RebindToUnsigned<TagOf<V>> du;
  const V to_exponent = all<V>(12582912.0);  // the low bits are then the integer part, as in exp_nonpositive
  const V shifted = hn::MulAdd(x, all<V>(factor), to_exponent);
  const V t = hn::MulSub(x, all<V>(factor), shifted - to_exponent);
  return hn::BitCast(d, hn::BitCast(du, short_power_of_part(t)) + hn::ShiftLeft<23>(hn::BitCast(du, shifted)));
}
inline constexpr double kHalfLog2E = 0.72134752044448170;

// The square of exp(x / 2), whose exponent needs no special handling at the ends of the range.
template <class V>
HWY_INLINE V short_exp(V x) {
  const V root = short_power(hn::Max(hn::Min(x, all<V>(89)), all<V>(-104)), kHalfLog2E);
  return or_nan(x, root * root);
}

// As exp_nonpositive: 0 below -87.7. Relative error 2^-17.
template <class V>
HWY_INLINE V short_exp_nonpositive(V x) {
  const TagOf<V> d;
  const hn::RebindToUnsigned<TagOf<V>> du;
  const V to_exponent = all<V>(12582912.0 + 127.0);
  const V clamped = hn::IfThenElse(hn::Lt(x, all<V>(-88)), all<V>(-88), x);
  const V shifted = hn::MulAdd(clamped, all<V>(2 * kHalfLog2E), to_exponent);
  const V t = hn::MulSub(clamped, all<V>(2 * kHalfLog2E), shifted - to_exponent);
  return short_power_of_part(t) * hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted)));
}

// Computed from exp(-|x|), which does not overflow.
template <class V>
HWY_INLINE V short_sigmoid(V x) {
  const V a = hn::Neg(hn::Abs(x));
  const V root = short_power(hn::IfThenElse(hn::Lt(a, all<V>(-104)), all<V>(-104), a), kHalfLog2E);
  const V e = root * root;
  const V one = all<V>(1);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(TagOf<V>())), e, one) / (one + e);
}

// A rational approximation up to 4.9; beyond, the result rounds to 1.
template <class V>
HWY_INLINE V short_tanh(V x) {
  const V near = hn::Max(hn::Min(x, all<V>(4.9)), all<V>(-4.9));
  const V s = near * near;
  const V p = polynomial(s, 1.6491855e-3, 1.16784268e-1, 9.99998239e-1);
  const V q = polynomial(s, 6.53093449e-5, 1.83696921e-2, 4.50103382e-1, 1.0);
  return or_nan(x, near * p / q);
}

// As normal_tail_factor. Relative error 2^-16 up to z = 6, beyond which the tail underflows float16, and 2^-11 beyond.
template <class V>
HWY_INLINE V short_tail_factor(V z) {
  const V p = polynomial(z, 5.43337841e-2, 2.57712771e-1, 5.00004159e-1);
  const V q = polynomial(z, 1.35735566e-1, 6.55089114e-1, 1.31360525, 1.0);
  return p / q;
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
