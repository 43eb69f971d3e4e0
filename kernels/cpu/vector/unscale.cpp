// The loops of gradient unscaling, which the compiler vectorizes by itself.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/unscale.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/vector/optimizer.h>

#include <hwy/highway.h>

#include <algorithm>
#include <bit>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {
namespace {

// 1 for infinities and NaN (all exponent bits set), else 0.
HWY_INLINE uint32_t is_not_finite(float x) {
  constexpr uint32_t kExponent = 0x7F800000;
  return (std::bit_cast<uint32_t>(x) & kExponent) == kExponent ? 1 : 0;
}

// Block by block, as in updates.cpp.
template <class T, class Body>
HWY_INLINE void for_blocks(const T* x, int64_t n, Body&& body) {
  constexpr auto kCacheLine = static_cast<int64_t>(64 / sizeof(T));
  constexpr int64_t kBlock = 16 * kCacheLine;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t stop = std::min(n, begin + kBlock);
    for (int64_t ahead = begin + 2 * kBlock; ahead < std::min(n, begin + 3 * kBlock); ahead += kCacheLine)
      __builtin_prefetch(x + ahead);
    body(begin, stop);
  }
}

// Compares the largest exponent field, on words of the same size, with `exponent`: all exponent bits set.
template <class Word, class T>
HWY_INLINE bool are_finite(const T* x, int64_t n, Word exponent) {
  Word largest = 0;
  for_blocks(x, n, [&](int64_t begin, int64_t end) HWY_ATTR {
    Word here = 0;
    for (int64_t i = begin; i < end; ++i)
      here = std::max(here, static_cast<Word>(std::bit_cast<Word>(x[i]) & exponent));
    largest = std::max(largest, here);
  });
  return largest != exponent;
}

}  // namespace

bool all_finite_loop(DType dtype, const void* x, int64_t n) {
  switch (dtype) {
    case kFloat16: return are_finite<uint16_t>(static_cast<const float16*>(x), n, 0x7C00);
    case kBFloat16: return are_finite<uint16_t>(static_cast<const bfloat16*>(x), n, 0x7F80);
    case kFloat32: return are_finite<uint32_t>(static_cast<const float*>(x), n, 0x7F800000);
    default: return are_finite<uint64_t>(static_cast<const double*>(x), n, 0x7FF0000000000000);
  }
}

bool unscale_loop(float* x, int64_t n, float factor) {
  uint32_t bad = 0;
  for_blocks(x, n, [&](int64_t begin, int64_t end) HWY_ATTR {
    uint32_t here = 0;
    for (int64_t i = begin; i < end; ++i) {
      here |= is_not_finite(x[i]);
      x[i] *= factor;
    }
    bad |= here;
  });
  return bad == 0;
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(all_finite_loop);
HWY_EXPORT(unscale_loop);

bool all_finite(DType dtype, const void* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(all_finite_loop)(dtype, x, n); }
bool unscale_floats(float* x, int64_t n, float factor) { return HWY_DYNAMIC_DISPATCH(unscale_loop)(x, n, factor); }

}  // namespace brigade::kernels::cpu
#endif
