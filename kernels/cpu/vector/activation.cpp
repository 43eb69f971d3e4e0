// The loops of the activations; gelu uses the upper tail of the normal distribution.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/activation.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/common/activation.h>
#include <brigade/kernels/cpu/vector/elementwise.h>
#include <brigade/kernels/cpu/vector/loops.inl.h>
#include <brigade/kernels/cpu/vector/math.inl.h>
#include <brigade/kernels/cpu/vector/short_math.inl.h>

#include <numbers>
#include <type_traits>
#include <variant>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {
namespace {

HWY_INLINE Vector zero() { return hn::Zero(Floats()); }
HWY_INLINE Vector one() { return all<Vector>(1); }

// exp(-z^2 / 2) for z = 0 .. kTailEnd. As exp_nonpositive, but in terms of z^2: the polynomial takes z^2 + 2 n ln 2,
// and n is added to the exponent of its result. At kTailEnd the exponent would underflow.
constexpr double kTailEnd = 13.1;
HWY_INLINE Vector bell(Vector z) {
  const hn::RebindToUnsigned<Floats> bits;
  const Vector s = z * z;
  const Vector to_integer = all<Vector>(12582912.0);
  const Vector shifted = hn::MulAdd(s, all<Vector>(-0.5 * 1.44269504088896341), to_integer);
  const Vector r = hn::MulAdd(shifted - to_integer, all<Vector>(2 * std::numbers::ln2), s);
  const Vector p = polynomial(r, 1.3984e-3 / 64, -8.3333e-3 / 32, 4.1666e-2 / 16, -1.66666667e-1 / 8, 0.125, -0.5, 1.0);
  return hn::BitCast(Floats(), hn::BitCast(bits, p) + hn::ShiftLeft<23>(hn::BitCast(bits, shifted)));
}

// The upper tail of the normal distribution at |x|, 1 - Phi(|x|), which gives Phi(x) for both signs, and exp(-x^2 / 2).
// Both are 0 far out, so that their products with an infinite x are NaN, as in PyTorch.
struct NormalTail {
  Vector density, tail;
};
HWY_INLINE NormalTail normal_tail(Vector x) {
  const Vector z = hn::Abs(x);
  const auto is_near = hn::Lt(z, all<Vector>(kTailEnd));
  const Vector density = bell(z);
  return {hn::IfThenElseZero(is_near, density), hn::IfThenElseZero(is_near, density * normal_tail_factor(z))};
}

// x Phi(x): Phi is the tail for x <= 0, and 1 - tail for x > 0.
HWY_INLINE Vector gelu(Vector x) {
  const NormalTail normal = normal_tail(x);
  return x * hn::IfThenElse(hn::Gt(x, zero()), one() - normal.tail, normal.tail);
}
// In half precision.
HWY_INLINE Vector short_gelu(Vector x) {
  const Vector z = hn::Abs(x);
  const Vector tail =
      hn::IfThenElseZero(hn::Lt(z, all<Vector>(kTailEnd)), short_power(z * z, -kHalfLog2E) * short_tail_factor(z));
  return x * hn::IfThenElse(hn::Gt(x, zero()), one() - tail, tail);
}
// Phi(x) + x phi(x)
HWY_INLINE Vector gelu_slope(Vector x) {
  const NormalTail normal = normal_tail(x);
  const Vector cdf = hn::IfThenElse(hn::Gt(x, zero()), one() - normal.tail, normal.tail);
  return hn::MulAdd(x * normal.density, all<Vector>(std::numbers::inv_sqrtpi / std::numbers::sqrt2), cdf);
}

// In half precision.
HWY_INLINE Vector short_gelu_slope(Vector x) {
  const Vector z = hn::Abs(x);
  const Vector density = hn::IfThenElseZero(hn::Lt(z, all<Vector>(kTailEnd)), short_power(z * z, -kHalfLog2E));
  const Vector tail = density * short_tail_factor(hn::Min(z, all<Vector>(kTailEnd)));
  const Vector cdf = hn::IfThenElse(hn::Gt(x, zero()), one() - tail, tail);
  return hn::MulAdd(x * density, all<Vector>(std::numbers::inv_sqrtpi / std::numbers::sqrt2), cdf);
}

// gelu(x) = x/2 (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3), by the sigmoid of 2 u.
HWY_INLINE Vector gelu_tanh_angle(Vector x) {
  return x * hn::MulAdd(x * x, all<Vector>(kSqrtTwoOverPi * kGeluCubic), all<Vector>(kSqrtTwoOverPi));
}
HWY_INLINE Vector gelu_tanh(Vector x) { return all<Vector>(0.5) * x * (one() + tanh(gelu_tanh_angle(x))); }
HWY_INLINE Vector gelu_tanh_slope(Vector x) {
  const Vector t = tanh(gelu_tanh_angle(x));
  const Vector inner = hn::MulAdd(x * x, all<Vector>(3 * kGeluCubic * kSqrtTwoOverPi), all<Vector>(kSqrtTwoOverPi));
  return all<Vector>(0.5) * hn::MulAdd(x * hn::NegMulAdd(t, t, one()), inner, one() + t);
}

HWY_INLINE Vector silu_slope(Vector x) {
  const Vector s = sigmoid(x);
  return hn::MulAdd(x * s, one() - s, s);
}

// --- vector versions of the functors of common/activation.h

// NaNs propagate, as in PyTorch.
HWY_INLINE auto of_vectors(const Relu&) {
  return [](auto v) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(v, zero()), v); };
}
HWY_INLINE auto of_vectors(const ReluBackward&) {
  return [](auto g, auto v) HWY_ATTR { return hn::IfThenZeroElse(hn::Le(v, zero()), g); };
}
HWY_INLINE auto of_vectors(const LeakyRelu& f) {
  const Vector factor = every_lane(static_cast<float>(f.slope));
  return [=](auto v) HWY_ATTR { return hn::IfThenElse(hn::Gt(v, zero()), v, v * factor); };
}
HWY_INLINE auto of_vectors(const LeakyReluBackward& f) {
  const Vector factor = every_lane(static_cast<float>(f.slope));
  return [=](auto g, auto v) HWY_ATTR { return hn::IfThenElse(hn::Gt(v, zero()), g, g * factor); };
}
HWY_INLINE auto of_vectors(const Gelu&) {
  return [](auto v) HWY_ATTR { return gelu(v); };
}
HWY_INLINE auto of_vectors(const GeluBackward&) {
  return [](auto g, auto v) HWY_ATTR { return g * gelu_slope(v); };
}
HWY_INLINE auto of_vectors(const GeluTanh&) {
  return [](auto v) HWY_ATTR { return gelu_tanh(v); };
}
HWY_INLINE auto of_vectors(const GeluTanhBackward&) {
  return [](auto g, auto v) HWY_ATTR { return g * gelu_tanh_slope(v); };
}
HWY_INLINE auto of_vectors(const Tanh&) {
  return [](auto v) HWY_ATTR { return tanh(v); };
}
HWY_INLINE auto of_vectors(const TanhBackward&) {
  return [](auto g, auto v) HWY_ATTR { return g * hn::NegMulAdd(v, v, one()); };
}
HWY_INLINE auto of_vectors(const Sigmoid&) {
  return [](auto v) HWY_ATTR { return sigmoid(v); };
}
HWY_INLINE auto of_vectors(const SigmoidBackward&) {
  return [](auto g, auto v) HWY_ATTR { return g * v * (one() - v); };
}
HWY_INLINE auto of_vectors(const Silu&) {
  return [](auto v) HWY_ATTR { return v * sigmoid(v); };
}
HWY_INLINE auto of_vectors(const SiluBackward&) {
  return [](auto g, auto v) HWY_ATTR { return g * silu_slope(v); };
}

// --- the same in half precision, where that is less work

template <class F>
HWY_INLINE auto of_halves(const F& f) {
  return of_vectors(f);
}
HWY_INLINE auto of_halves(const Gelu&) {
  return [](auto v) HWY_ATTR { return short_gelu(v); };
}
HWY_INLINE auto of_halves(const GeluBackward&) {
  return [](auto g, auto v) HWY_ATTR { return g * short_gelu_slope(v); };
}
HWY_INLINE auto of_halves(const Tanh&) {
  return [](auto v) HWY_ATTR { return short_tanh(v); };
}
HWY_INLINE auto of_halves(const Sigmoid&) {
  return [](auto v) HWY_ATTR { return short_sigmoid(v); };
}
HWY_INLINE auto of_halves(const Silu&) {
  return [](auto v) HWY_ATTR { return v * short_sigmoid(v); };
}

}  // namespace

void activation_loop(const ActivationFunction& any, const FloatArrays& arrays) {
  std::visit([&]<class F>(const F& f)
                 HWY_ATTR { each_of<std::is_invocable_v<F, float> ? 1 : 2>(arrays, of_vectors(f), of_halves(f)); },
             any);
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(activation_loop);

void activation_floats(const ActivationFunction& f, const FloatArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(activation_loop)(f, arrays);
}

}  // namespace brigade::kernels::cpu
#endif
