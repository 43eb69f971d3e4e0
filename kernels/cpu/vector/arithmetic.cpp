// The loops of binary operations, scaled sums, clamp, addcmul, addcdiv and lerp.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/arithmetic.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/vector/elementwise.h>
#include <brigade/kernels/cpu/vector/loops.inl.h>
#include <brigade/kernels/cpu/vector/math.inl.h>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {
namespace {

// Calls body with the function of two vectors. Maximum and minimum propagate NaNs.
template <class Body>
HWY_INLINE void with_binary(BinaryOp op, Body body) {
  switch (op) {
    case BinaryOp::Add: return body([](auto x, auto y) HWY_ATTR { return x + y; });
    case BinaryOp::Sub: return body([](auto x, auto y) HWY_ATTR { return x - y; });
    case BinaryOp::Mul: return body([](auto x, auto y) HWY_ATTR { return x * y; });
    case BinaryOp::Div: return body([](auto x, auto y) HWY_ATTR { return x / y; });
    case BinaryOp::Maximum:
      return body([](auto x, auto y) HWY_ATTR { return hn::IfThenElse(hn::Or(is_nan(x), hn::Gt(x, y)), x, y); });
    case BinaryOp::Minimum:
      return body([](auto x, auto y) HWY_ATTR { return hn::IfThenElse(hn::Or(is_nan(x), hn::Lt(x, y)), x, y); });
  }
}

// Computed from the nearer end, so that a weight of 1 gives exactly b.
HWY_INLINE Vector lerp(Vector a, Vector b, Vector weight) {
  const Vector distance = b - a;
  const Vector from_a = hn::MulAdd(weight, distance, a);
  const Vector from_b = hn::NegMulAdd(distance, all<Vector>(1) - weight, b);
  return hn::IfThenElse(hn::Lt(hn::Abs(weight), all<Vector>(0.5)), from_a, from_b);
}

}  // namespace

void binary_loop(BinaryOp op, const FloatArrays& arrays) {
  with_binary(op, [&](auto f) HWY_ATTR { each_of<2>(arrays, f); });
}

void binary_number_loop(BinaryOp op, float number, bool reversed, const FloatArrays& arrays) {
  const Vector same = every_lane(number);
  with_binary(op, [&](auto f) HWY_ATTR {
    if (reversed) {
      each_of<1>(arrays, [=](auto v) HWY_ATTR { return f(same, v); });
    } else {
      each_of<1>(arrays, [=](auto v) HWY_ATTR { return f(v, same); });
    }
  });
}

void add_scaled_loop(float factor, const FloatArrays& arrays) {
  const Vector same = every_lane(factor);
  each_of<2>(arrays, [=](auto a, auto b) HWY_ATTR { return hn::MulAdd(same, b, a); });
}

void clamp_loop(float lower, float upper, const FloatArrays& arrays) {
  const Vector low = every_lane(lower);
  const Vector high = every_lane(upper);
  each_of<1>(arrays, [=](auto v) HWY_ATTR {
    v = hn::IfThenElse(hn::Or(is_nan(v), hn::Ge(v, low)), v, low);
    return hn::IfThenElse(hn::Or(is_nan(v), hn::Le(v, high)), v, high);
  });
}

void ternary_loop(TernaryOp op, float number, const FloatArrays& arrays) {
  const Vector same = every_lane(number);
  switch (op) {
    case TernaryOp::Addcmul:
      return each_of<3>(arrays, [=](auto x, auto y, auto z) HWY_ATTR { return hn::MulAdd(same * y, z, x); });
    case TernaryOp::Addcdiv:
      return each_of<3>(arrays, [=](auto x, auto y, auto z) HWY_ATTR { return x + same * y / z; });
    case TernaryOp::Lerp: return each_of<3>(arrays, [](auto x, auto y, auto z) HWY_ATTR { return lerp(x, y, z); });
  }
}

void lerp_loop(float weight, const FloatArrays& arrays) {
  const Vector same = every_lane(weight);
  each_of<2>(arrays, [=](auto x, auto y) HWY_ATTR { return lerp(x, y, same); });
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(binary_loop);
HWY_EXPORT(binary_number_loop);
HWY_EXPORT(add_scaled_loop);
HWY_EXPORT(clamp_loop);
HWY_EXPORT(ternary_loop);
HWY_EXPORT(lerp_loop);

void binary_floats(BinaryOp op, const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(binary_loop)(op, arrays); }
void binary_number_floats(BinaryOp op, float number, bool reversed, const FloatArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(binary_number_loop)(op, number, reversed, arrays);
}
void add_scaled_floats(float factor, const FloatArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(add_scaled_loop)(factor, arrays);
}
void clamp_floats(float lower, float upper, const FloatArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(clamp_loop)(lower, upper, arrays);
}
void ternary_floats(TernaryOp op, float number, const FloatArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(ternary_loop)(op, number, arrays);
}
void lerp_floats(float weight, const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(lerp_loop)(weight, arrays); }

}  // namespace brigade::kernels::cpu
#endif
