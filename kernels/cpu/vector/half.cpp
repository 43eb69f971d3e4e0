// The loops that widen float16 and bfloat16 to float32, and narrow float32 to them.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/half.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/vector/elements.inl.h>
#include <brigade/kernels/cpu/vector/elementwise.h>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {
namespace {

template <class From, class To>
HWY_INLINE void convert_all(const From* from, To* to, int64_t n) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes)
    store_vectors(load_vector(from + i), load_vector(from + i + lanes), to + i);
  for (; i + lanes <= n; i += lanes)
    store_vector(load_vector(from + i), to + i);
  if (i < n) store_part(load_part(from + i, n - i), to + i, n - i);
}

}  // namespace

void widen_half(const float16* from, float* to, int64_t n) { convert_all(from, to, n); }
void widen_bfloat(const bfloat16* from, float* to, int64_t n) { convert_all(from, to, n); }
void narrow_half(const float* from, float16* to, int64_t n) { convert_all(from, to, n); }
void narrow_bfloat(const float* from, bfloat16* to, int64_t n) { convert_all(from, to, n); }

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(widen_half);
HWY_EXPORT(widen_bfloat);
HWY_EXPORT(narrow_half);
HWY_EXPORT(narrow_bfloat);

void widen(const float16* from, float* to, int64_t n) { HWY_DYNAMIC_DISPATCH(widen_half)(from, to, n); }
void widen(const bfloat16* from, float* to, int64_t n) { HWY_DYNAMIC_DISPATCH(widen_bfloat)(from, to, n); }
void narrow(const float* from, float16* to, int64_t n) { HWY_DYNAMIC_DISPATCH(narrow_half)(from, to, n); }
void narrow(const float* from, bfloat16* to, int64_t n) { HWY_DYNAMIC_DISPATCH(narrow_bfloat)(from, to, n); }

}  // namespace brigade::kernels::cpu
#endif
