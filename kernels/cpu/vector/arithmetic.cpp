#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/arithmetic.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/vector/arithmetic.h>
#include <brigade/kernels/cpu/vector/loops.inl.h>
#include <brigade/kernels/cpu/vector/math.inl.h>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {

namespace {

// Calls body with the function of two vectors. A NaN in either operand of maximum and minimum stays one.
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

// From the end that is nearer, so that a weight of 1 gives b.
HWY_INLINE Vector lerp(Vector a, Vector b, Vector weight) {
  const Vector distance = b - a;
  const Vector from_a = hn::MulAdd(weight, distance, a);
  const Vector from_b = hn::NegMulAdd(distance, all<Vector>(1) - weight, b);
  return hn::IfThenElse(hn::Lt(hn::Abs(weight), all<Vector>(0.5)), from_a, from_b);
}

}  // namespace

void binary_loop(BinaryOp op, const float* x, const float* y, float* out, int64_t n) {
  with_binary(op, [=](auto f) HWY_ATTR { each2(x, y, out, n, f); });
}

void binary_number_loop(BinaryOp op, const float* x, float number, bool reversed, float* out, int64_t n) {
  const Vector same = hn::Set(Floats(), number);
  with_binary(op, [=](auto f) HWY_ATTR {
    if (reversed) {
      each1(x, out, n, [=](auto v) HWY_ATTR { return f(same, v); });
    } else {
      each1(x, out, n, [=](auto v) HWY_ATTR { return f(v, same); });
    }
  });
}

void add_scaled_loop(const float* x, const float* y, float factor, float* out, int64_t n) {
  const Vector same = hn::Set(Floats(), factor);
  each2(x, y, out, n, [=](auto a, auto b) HWY_ATTR { return hn::MulAdd(same, b, a); });
}

void clamp_loop(const float* x, float lower, float upper, float* out, int64_t n) {
  const Vector low = hn::Set(Floats(), lower);
  const Vector high = hn::Set(Floats(), upper);
  each1(x, out, n, [=](auto v) HWY_ATTR {
    v = hn::IfThenElse(hn::Or(is_nan(v), hn::Ge(v, low)), v, low);
    return hn::IfThenElse(hn::Or(is_nan(v), hn::Le(v, high)), v, high);
  });
}

void ternary_loop(TernaryOp op, const float* a, const float* b, const float* c, float number, float* out, int64_t n) {
  const float* const in[3] = {a, b, c};
  const Vector same = hn::Set(Floats(), number);
  switch (op) {
    case TernaryOp::Addcmul:
      return each(in, out, n, [=](auto x, auto y, auto z) HWY_ATTR { return hn::MulAdd(same * y, z, x); });
    case TernaryOp::Addcdiv: return each(in, out, n, [=](auto x, auto y, auto z) HWY_ATTR { return x + same * y / z; });
    case TernaryOp::Lerp: return each(in, out, n, [](auto x, auto y, auto z) HWY_ATTR { return lerp(x, y, z); });
  }
}

void lerp_loop(const float* a, const float* b, float weight, float* out, int64_t n) {
  const Vector same = hn::Set(Floats(), weight);
  each2(a, b, out, n, [=](auto x, auto y) HWY_ATTR { return lerp(x, y, same); });
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

void binary_floats(BinaryOp op, const float* x, const float* y, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(binary_loop)(op, x, y, out, n);
}
void binary_number_floats(BinaryOp op, const float* x, float number, bool reversed, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(binary_number_loop)(op, x, number, reversed, out, n);
}
void add_scaled_floats(const float* x, const float* y, float factor, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(add_scaled_loop)(x, y, factor, out, n);
}
void clamp_floats(const float* x, float lower, float upper, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(clamp_loop)(x, lower, upper, out, n);
}
void ternary_floats(TernaryOp op, const float* a, const float* b, const float* c, float number, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ternary_loop)(op, a, b, c, number, out, n);
}
void lerp_floats(const float* a, const float* b, float weight, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(lerp_loop)(a, b, weight, out, n);
}

}  // namespace brigade::kernels::cpu
#endif
