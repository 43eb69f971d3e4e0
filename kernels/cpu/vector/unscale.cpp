// The compiler makes vectors of these loops by itself.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/unscale.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/vector/unscale.h>

#include <hwy/highway.h>

#include <algorithm>
#include <bit>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {

namespace {

constexpr int64_t kCacheLine = 64 / sizeof(float);
constexpr int64_t kBlock = 16 * kCacheLine;

// Not 0 for infinities and NaN, whose exponent has all its bits.
HWY_INLINE uint32_t is_not_finite(float x) {
  constexpr uint32_t kExponent = 0x7F800000;
  return (std::bit_cast<uint32_t>(x) & kExponent) == kExponent ? 1 : 0;
}

// Block by block, as updates.cpp.
template <class Body>
HWY_INLINE void for_blocks(const float* x, int64_t n, Body&& body) {
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t stop = std::min(n, begin + kBlock);
    for (int64_t ahead = begin + 2 * kBlock; ahead < std::min(n, begin + 3 * kBlock); ahead += kCacheLine)
      __builtin_prefetch(x + ahead);
    body(begin, stop);
  }
}

}  // namespace

bool unscale_loop(float* x, int64_t n, float factor) {
  uint32_t bad = 0;
  if (factor == 1) {
    for_blocks(x, n, [&](int64_t begin, int64_t end) HWY_ATTR {
      uint32_t here = 0;
      for (int64_t i = begin; i < end; ++i)
        here |= is_not_finite(x[i]);
      bad |= here;
    });
  } else {
    for_blocks(x, n, [&](int64_t begin, int64_t end) HWY_ATTR {
      uint32_t here = 0;
      for (int64_t i = begin; i < end; ++i) {
        here |= is_not_finite(x[i]);
        x[i] *= factor;
      }
      bad |= here;
    });
  }
  return bad == 0;
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(unscale_loop);

bool unscale_floats(float* x, int64_t n, float factor) { return HWY_DYNAMIC_DISPATCH(unscale_loop)(x, n, factor); }

}  // namespace brigade::kernels::cpu
#endif
