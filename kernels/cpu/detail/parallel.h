// One OpenMP pool for all kernels; small work stays on the calling thread.
#pragma once

#include <algorithm>
#include <cstdint>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace brigade::kernels::cpu {

// The work, in cheap elements, below which a second thread costs more than it saves.
inline constexpr int64_t kGrain = 32768;

inline int threads_for(int64_t work, int64_t grain) noexcept {
#ifdef _OPENMP
  if (work < 2 * grain || omp_in_parallel()) return 1;
  return static_cast<int>(std::min<int64_t>(omp_get_max_threads(), work / grain));
#else
  (void)work;
  (void)grain;
  return 1;
#endif
}

// Calls body(begin, end) on disjoint ranges that cover [0, n). `cost`: the work per index, in cheap elements.
template <class Body>
void parallel_for(int64_t n, Body&& body, int64_t cost = 1) {
  const int threads = threads_for(n * std::max<int64_t>(cost, 1), kGrain);
  if (threads <= 1) {
    if (n > 0) body(int64_t{0}, n);
    return;
  }
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
  {
    const int64_t count = omp_get_num_threads();
    const int64_t me = omp_get_thread_num();
    // Ranges end on multiples of 64 elements, so that no two threads share a cache line.
    const int64_t chunk = n / count >= 64 ? ((n + count - 1) / count + 63) / 64 * 64 : (n + count - 1) / count;
    const int64_t begin = std::min(n, me * chunk);
    const int64_t end = std::min(n, begin + chunk);
    if (begin < end) body(begin, end);
  }
#endif
}

}  // namespace brigade::kernels::cpu
