// The loops of elementary functions, in float32, or in float64 where rounding errors would add up (pow, atan2,
// remainder and fmod always do).
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/functions.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cpu/vector/elementwise.h>
#include <brigade/kernels/cpu/vector/loops.inl.h>
#include <brigade/kernels/cpu/vector/math.inl.h>
#include <brigade/kernels/cpu/vector/short_math.inl.h>
#include <brigade/kernels/cpu/vector/wide_math.inl.h>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {
namespace {

template <class F>
void run(const float* x, float* y, int64_t n, F f) {
  each1(x, y, n, f);
}
template <class F>
void run_wide(const float* x, float* y, int64_t n, F f) {
  each_wide<1>({x}, y, n, f, [](float v) { return v; });
}
template <class F, class Exact>
void run_mostly(const float* x, float* y, int64_t n, F f, Exact exact) {
  each_wide<1>({x}, y, n, f, exact);
}

// For the rounding functions: a zero result keeps the sign of its argument.
HWY_INLINE Vector with_sign(Vector y, Vector x) { return hn::CopySign(y, x); }

}  // namespace

void function_loop(Function f, const float* x, float* y, int64_t n) {
  switch (f) {
    case Function::Rsqrt: return run(x, y, n, [](auto v) HWY_ATTR { return all<Vector>(1) / hn::Sqrt(v); });
    case Function::Sin:
      return run_mostly(
          x, y, n, [](auto v) HWY_ATTR { return wide_sin(v); }, [](float v) { return std::sin(v); });
    case Function::Cos:
      return run_mostly(
          x, y, n, [](auto v) HWY_ATTR { return wide_cos(v); }, [](float v) { return std::cos(v); });
    case Function::Tan:
      return run_mostly(
          x, y, n, [](auto v) HWY_ATTR { return wide_tan(v); }, [](float v) { return std::tan(v); });
    case Function::Asin: return run_wide(x, y, n, [](auto v) HWY_ATTR { return wide_asin(v); });
    case Function::Acos: return run_wide(x, y, n, [](auto v) HWY_ATTR { return wide_acos(v); });
    case Function::Atan: return run_wide(x, y, n, [](auto v) HWY_ATTR { return wide_atan(v); });
    case Function::Erfc: return run_wide(x, y, n, [](auto v) HWY_ATTR { return wide_erfc(v); });
    case Function::Sinh: return run(x, y, n, [](auto v) HWY_ATTR { return sinh(v); });
    case Function::Cosh: return run(x, y, n, [](auto v) HWY_ATTR { return cosh(v); });
    case Function::Log1p: return run(x, y, n, [](auto v) HWY_ATTR { return log1p(v); });
    case Function::Expm1: return run(x, y, n, [](auto v) HWY_ATTR { return expm1(v); });
    case Function::Log2: return run(x, y, n, [](auto v) HWY_ATTR { return log2(v); });
    case Function::Log10: return run(x, y, n, [](auto v) HWY_ATTR { return log10(v); });
    case Function::Exp2: return run(x, y, n, [](auto v) HWY_ATTR { return exp2(v); });
    case Function::Erf: return run(x, y, n, [](auto v) HWY_ATTR { return erf(v); });
    case Function::Floor: return run(x, y, n, [](auto v) HWY_ATTR { return with_sign(hn::Floor(v), v); });
    case Function::Ceil: return run(x, y, n, [](auto v) HWY_ATTR { return with_sign(hn::Ceil(v), v); });
    case Function::Round: return run(x, y, n, [](auto v) HWY_ATTR { return with_sign(hn::Round(v), v); });
    case Function::Trunc: return run(x, y, n, [](auto v) HWY_ATTR { return with_sign(hn::Trunc(v), v); });
  }
}

void unary_loop(UnaryOp op, const FloatArrays& arrays) {
  switch (op) {
    case UnaryOp::Neg: return each_of<1>(arrays, [](auto v) HWY_ATTR { return hn::Neg(v); });
    case UnaryOp::Abs: return each_of<1>(arrays, [](auto v) HWY_ATTR { return hn::Abs(v); });
    case UnaryOp::Exp:
      return each_of<1>(
          arrays, [](auto v) HWY_ATTR { return exp(v); }, [](auto v) HWY_ATTR { return short_exp(v); });
    case UnaryOp::Log: return each_of<1>(arrays, [](auto v) HWY_ATTR { return log(v); });
    case UnaryOp::Sqrt: return each_of<1>(arrays, [](auto v) HWY_ATTR { return hn::Sqrt(v); });
    case UnaryOp::Reciprocal: return each_of<1>(arrays, [](auto v) HWY_ATTR { return all<Vector>(1) / v; });
    case UnaryOp::Square: return each_of<1>(arrays, [](auto v) HWY_ATTR { return v * v; });
    case UnaryOp::Sign:
      return each_of<1>(arrays, [](auto v) HWY_ATTR {
        const Vector zero = hn::Zero(Floats());
        const Vector one = all<Vector>(1);
        return hn::IfThenElseZero(hn::Gt(v, zero), one) - hn::IfThenElseZero(hn::Lt(v, zero), one);
      });
  }
}

void binary_function_loop(BinaryFunction f, const float* x, const float* y, float* out, int64_t n) {
  const float* const in[2] = {x, y};
  switch (f) {
    case BinaryFunction::Pow:
      return each_wide(
          in, out, n, [](auto a, auto b) HWY_ATTR { return wide_pow(a, b); }, BinaryFunctor<BinaryFunction::Pow>());
    case BinaryFunction::Atan2:
      return each_wide(
          in, out, n, [](auto a, auto b) HWY_ATTR { return wide_atan2(a, b); }, BinaryFunctor<BinaryFunction::Atan2>());
    case BinaryFunction::Remainder:
      return each_wide(
          in, out, n, [](auto a, auto b) HWY_ATTR { return wide_remainder(a, b); },
          BinaryFunctor<BinaryFunction::Remainder>());
    case BinaryFunction::Fmod:
      return each_wide(
          in, out, n, [](auto a, auto b) HWY_ATTR { return wide_fmod(a, b); }, BinaryFunctor<BinaryFunction::Fmod>());
  }
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(function_loop);
HWY_EXPORT(unary_loop);
HWY_EXPORT(binary_function_loop);

void function_floats(Function f, const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(function_loop)(f, x, y, n);
}
void binary_function_floats(BinaryFunction f, const float* x, const float* y, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(binary_function_loop)(f, x, y, out, n);
}
void unary_floats(UnaryOp op, const FloatArrays& arrays) { HWY_DYNAMIC_DISPATCH(unary_loop)(op, arrays); }

}  // namespace brigade::kernels::cpu
#endif
