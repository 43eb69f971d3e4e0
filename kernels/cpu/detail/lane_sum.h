// Sums over a row in many parallel running sums, so that the loop vectorizes. The order of additions depends on the
// length alone.
#pragma once

#include <algorithm>
#include <cstdint>

namespace brigade::kernels::cpu {

// 32 lanes: with fewer, the compiler keeps the running sums in memory instead of vector registers.
inline constexpr int kSumLanes = 32;

// Sum of f(i) over [begin, end) in C.
template <class C, class F>
C lane_sum(int64_t begin, int64_t end, F f) {
  int64_t i = begin;
  if (end - begin < kSumLanes) {
    C sum = 0;
    for (; i < end; ++i)
      sum += f(i);
    return sum;
  }
  C lanes[kSumLanes] = {};
  for (; i + kSumLanes <= end; i += kSumLanes) {
    for (int lane = 0; lane < kSumLanes; ++lane)
      lanes[lane] += f(i + lane);
  }
  for (int half = kSumLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane)
      lanes[lane] += lanes[lane + half];
  }
  C sum = lanes[0];
  for (; i < end; ++i)
    sum += f(i);
  return sum;
}

// The same for long rows: blocks in C, the total in double, so that long rows do not lose digits.
template <class C, class F>
double long_sum(int64_t begin, int64_t end, F f) {
  constexpr int64_t kBlock = 2048;
  double total = 0;
  for (int64_t from = begin; from < end; from += kBlock)
    total += static_cast<double>(lane_sum<C>(from, std::min(end, from + kBlock), f));
  return total;
}

}  // namespace brigade::kernels::cpu
