// The loops of the optimizer updates, which the compiler vectorizes by itself.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/updates.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/vector/optimizer.h>

#include <hwy/highway.h>

#include <algorithm>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {
namespace {

// Block by block, prefetching the block after next. (The hardware prefetcher stops at page boundaries of each array.)
template <class Update, size_t... array>
void update_range(const Update& update, float* const* arrays, int64_t begin, int64_t end,
                  std::index_sequence<array...>) {
  constexpr int64_t kCacheLine = 64 / sizeof(float);
  constexpr int64_t kBlock = 8 * kCacheLine;
  float* const row[] = {arrays[array]...};
  while (begin < end) {
    const int64_t stop = std::min(end, begin + kBlock);
    for (int64_t ahead = begin + 2 * kBlock; ahead < std::min(end, begin + 3 * kBlock); ahead += kCacheLine)
      (__builtin_prefetch(row[array] + ahead), ...);
      // The arrays do not overlap.
#pragma GCC ivdep
    for (int64_t i = begin; i < stop; ++i) {
      float v[sizeof...(array)] = {row[array][i]...};
      update(v);
      ((array == 1 ? void() : void(row[array][i] = v[array])), ...);
    }
    begin = stop;
  }
}

}  // namespace

void update_loop(const FloatUpdate& any, float* const* arrays, int64_t begin, int64_t end) {
  std::visit([=]<class Update>(const Update& update)
                 HWY_ATTR { update_range(update, arrays, begin, end, std::make_index_sequence<Update::kArrays>()); },
             any);
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(update_loop);

void update_floats(const FloatUpdate& update, float* const* arrays, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(update_loop)(update, arrays, begin, end);
}

}  // namespace brigade::kernels::cpu
#endif
