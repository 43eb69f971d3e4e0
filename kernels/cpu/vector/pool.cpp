// Max pooling of 2 x 2 windows: a vector holds the same element of adjacent windows.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/pool.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/vector/sums.h>

#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void max_pool_two_by_two_loop(const float* image, int64_t width, int64_t rows, int64_t out, float* values,
                              int64_t* places) {
  // Capped, so that a row of a small plane fills a vector.
  const hn::CappedTag<float, kPoolLanes> d;
  const hn::RebindToSigned<decltype(d)> indices;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Positions of a window's elements, relative to the first element of the first window.
  const auto first = hn::Add(hn::Iota(indices, 0), hn::Iota(indices, 0));
  const auto second = hn::Add(first, hn::Set(indices, 1));
  const auto third = hn::Add(first, hn::Set(indices, static_cast<int32_t>(width)));
  const auto fourth = hn::Add(second, hn::Set(indices, static_cast<int32_t>(width)));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t next = 0; next < out; next += lanes) {
      // The last vector of a row starts early enough to fit, and repeats some windows.
      const int64_t o = std::min(next, out - lanes);
      const int64_t start = 2 * (row * width + o);
      auto best = hn::Undefined(d);
      auto right = hn::Undefined(d);
      auto below = hn::Undefined(d);
      auto last = hn::Undefined(d);
      hn::LoadInterleaved2(d, image + start, best, right);
      hn::LoadInterleaved2(d, image + start + width, below, last);
      auto place = first;
      const auto challenge = [&](auto candidate, auto at) HWY_ATTR {
        const auto wins = hn::Or(hn::Gt(candidate, best), hn::IsNaN(candidate));
        best = hn::IfThenElse(wins, candidate, best);
        place = hn::IfThenElse(hn::RebindMask(indices, wins), at, place);
      };
      challenge(right, second);
      challenge(below, third);
      challenge(last, fourth);
      hn::StoreU(best, d, values + row * out + o);
      int32_t from_start[kPoolLanes];
      hn::StoreU(place, indices, from_start);
      for (int64_t i = 0; i < lanes; ++i)
        places[row * out + o + i] = start + from_start[i];
    }
  }
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(max_pool_two_by_two_loop);

void max_pool_two_by_two(const float* image, int64_t width, int64_t rows, int64_t out, float* values, int64_t* places) {
  HWY_DYNAMIC_DISPATCH(max_pool_two_by_two_loop)(image, width, rows, out, values, places);
}

}  // namespace brigade::kernels::cpu
#endif
