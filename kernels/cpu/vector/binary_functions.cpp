// The loops of pow, atan2, remainder and fmod, computed in float64 (wide_math.inl.h).
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/binary_functions.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cpu/vector/elementwise.h>
#include <brigade/kernels/cpu/vector/wide_math.inl.h>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {

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

HWY_EXPORT(binary_function_loop);

void binary_function_floats(BinaryFunction f, const float* x, const float* y, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(binary_function_loop)(f, x, y, out, n);
}

}  // namespace brigade::kernels::cpu
#endif
