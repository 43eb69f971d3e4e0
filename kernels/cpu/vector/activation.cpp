// The loops of the activations; gelu goes by the upper tail of the normal distribution.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/activation.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/common/activation.h>
#include <brigade/kernels/cpu/vector/activation.h>
#include <brigade/kernels/cpu/vector/loops.inl.h>
#include <brigade/kernels/cpu/vector/math.inl.h>

#include <numbers>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {

namespace {

HWY_INLINE Vector zero() { return hn::Zero(Floats()); }
HWY_INLINE Vector one() { return all<Vector>(1); }

// exp(-z^2 / 2) for z = 0 .. kTailEnd. As exp_nonpositive, in terms of z^2 throughout: with z^2 + 2
// n ln 2 as the argument of the polynomial; n is added to the exponent of what that gives, so the
// end is where it would leave it.
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

// The upper tail of the normal distribution at |x|, 1 - Phi(|x|), from which both sides follow; and
// exp(-x^2 / 2). Both are 0 far out, so that their products with an infinite x are NaN, as
// PyTorch's are.
struct NormalTail {
  Vector density, tail;
};
HWY_INLINE NormalTail normal_tail(Vector x) {
  const Vector z = hn::Abs(x);
  const auto is_near = hn::Lt(z, all<Vector>(kTailEnd));
  const Vector density = bell(z);
  return {hn::IfThenElseZero(is_near, density), hn::IfThenElseZero(is_near, density * normal_tail_factor(z))};
}

// x Phi(x): below 0 the tail itself, above it what the tail leaves.
HWY_INLINE Vector gelu(Vector x) {
  const NormalTail normal = normal_tail(x);
  return x * hn::IfThenElse(hn::Gt(x, zero()), one() - normal.tail, normal.tail);
}
// Phi(x) + x phi(x)
HWY_INLINE Vector gelu_slope(Vector x) {
  const NormalTail normal = normal_tail(x);
  const Vector cdf = hn::IfThenElse(hn::Gt(x, zero()), one() - normal.tail, normal.tail);
  return hn::MulAdd(x * normal.density, all<Vector>(std::numbers::inv_sqrtpi / std::numbers::sqrt2), cdf);
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

}  // namespace

// A NaN passes through, as in PyTorch.
void relu_loop(const FloatArrays& arrays) {
  each_of<1>(arrays, [](auto v) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(v, zero()), v); });
}
void leaky_relu_loop(float slope, const FloatArrays& arrays) {
  const Vector factor = every_lane(slope);
  each_of<1>(arrays, [=](auto v) HWY_ATTR { return hn::IfThenElse(hn::Gt(v, zero()), v, v * factor); });
}
void gelu_loop(const FloatArrays& arrays) {
  each_of<1>(arrays, [](auto v) HWY_ATTR { return gelu(v); });
}
void gelu_tanh_loop(const FloatArrays& arrays) {
  each_of<1>(arrays, [](auto v) HWY_ATTR { return gelu_tanh(v); });
}
void tanh_loop(const FloatArrays& arrays) {
  each_of<1>(arrays, [](auto v) HWY_ATTR { return tanh(v); });
}
void sigmoid_loop(const FloatArrays& arrays) {
  each_of<1>(arrays, [](auto v) HWY_ATTR { return sigmoid(v); });
}
void silu_loop(const FloatArrays& arrays) {
  each_of<1>(arrays, [](auto v) HWY_ATTR { return v * sigmoid(v); });
}

void relu_gradient_loop(const FloatArrays& arrays) {
  each_of<2>(arrays, [](auto g, auto v) HWY_ATTR { return hn::IfThenZeroElse(hn::Le(v, zero()), g); });
}
void leaky_relu_gradient_loop(float slope, const FloatArrays& arrays) {
  const Vector factor = every_lane(slope);
  each_of<2>(arrays, [=](auto g, auto v) HWY_ATTR { return hn::IfThenElse(hn::Gt(v, zero()), g, g * factor); });
}
void gelu_gradient_loop(const FloatArrays& arrays) {
  each_of<2>(arrays, [](auto g, auto v) HWY_ATTR { return g * gelu_slope(v); });
}
void gelu_tanh_gradient_loop(const FloatArrays& arrays) {
  each_of<2>(arrays, [](auto g, auto v) HWY_ATTR { return g * gelu_tanh_slope(v); });
}
void tanh_gradient_loop(const FloatArrays& arrays) {
  each_of<2>(arrays, [](auto g, auto v) HWY_ATTR { return g * hn::NegMulAdd(v, v, one()); });
}
void sigmoid_gradient_loop(const FloatArrays& arrays) {
  each_of<2>(arrays, [](auto g, auto v) HWY_ATTR { return g * v * (one() - v); });
}
void silu_gradient_loop(const FloatArrays& arrays) {
  each_of<2>(arrays, [](auto g, auto v) HWY_ATTR { return g * silu_slope(v); });
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(relu_loop);
HWY_EXPORT(leaky_relu_loop);
HWY_EXPORT(gelu_loop);
HWY_EXPORT(gelu_tanh_loop);
HWY_EXPORT(tanh_loop);
HWY_EXPORT(sigmoid_loop);
HWY_EXPORT(silu_loop);
HWY_EXPORT(relu_gradient_loop);
HWY_EXPORT(leaky_relu_gradient_loop);
HWY_EXPORT(gelu_gradient_loop);
HWY_EXPORT(gelu_tanh_gradient_loop);
HWY_EXPORT(tanh_gradient_loop);
HWY_EXPORT(sigmoid_gradient_loop);
HWY_EXPORT(silu_gradient_loop);

void relu_floats(const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(relu_loop)(arrays); }
void leaky_relu_floats(float slope, const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(leaky_relu_loop)(slope, arrays); }
void gelu_floats(const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(gelu_loop)(arrays); }
void gelu_tanh_floats(const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(gelu_tanh_loop)(arrays); }
void tanh_floats(const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(tanh_loop)(arrays); }
void sigmoid_floats(const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(sigmoid_loop)(arrays); }
void silu_floats(const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(silu_loop)(arrays); }

void relu_gradient_floats(const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(relu_gradient_loop)(arrays); }
void leaky_relu_gradient_floats(float slope, const FloatArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(leaky_relu_gradient_loop)(slope, arrays);
}
void gelu_gradient_floats(const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(gelu_gradient_loop)(arrays); }
void gelu_tanh_gradient_floats(const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(gelu_tanh_gradient_loop)(arrays); }
void tanh_gradient_floats(const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(tanh_gradient_loop)(arrays); }
void sigmoid_gradient_floats(const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(sigmoid_gradient_loop)(arrays); }
void silu_gradient_floats(const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(silu_gradient_loop)(arrays); }

}  // namespace brigade::kernels::cpu
#endif
