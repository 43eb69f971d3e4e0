// Rows of a matrix: a warp for each short one, a block for each long one.
#pragma once

#include <brigade/kernels/cuda/detail/row_reduce.h>

#include <limits>

namespace brigade::kernels::cuda {

inline constexpr int kRowThreads = 256;
inline constexpr int kRowsPerBlock = 4;     // of short rows: one warp each
inline constexpr int64_t kShortRow = 1024;  // elements

// The threads that share a row, and how they combine what each has seen.
template <bool short_rows>
struct RowThreads {
  __device__ static int64_t row() {
    return short_rows ? static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.y : blockIdx.x;
  }
  __device__ static int64_t step() { return short_rows ? kWarp : kRowThreads; }
  template <class V, class F>
  __device__ static V reduce(V value, F combine) {
    if constexpr (short_rows) {
      return warp_reduce(value, combine);
    } else {
      BRIGADE_SHARED(V, partial, [kRowThreads / kWarp]);
      return block_reduce(value, combine, &partial[0]);
    }
  }
};

template <class C>
__device__ MaxAndSum<C> nothing_seen() {
  return {-std::numeric_limits<C>::infinity(), C(0)};
}
// One more element.
template <class C>
__device__ void see(MaxAndSum<C>& seen, C value) {
  if (value > seen.max || value != value) {
    // An infinity makes the row NaN, as on the CPU: exp(inf - inf).
    seen.sum = (seen.sum == C(0) ? C(0) : seen.sum * std::exp(seen.max - value)) + std::exp(value - value);
    seen.max = value;
  } else if (seen.max > -std::numeric_limits<C>::infinity() || seen.max != seen.max) {
    seen.sum += std::exp(value - seen.max);
  }  // else both are -inf: nothing to add
}

// The kernel for short or for long rows, with `rows` and `n` (elements of a row) before its other arguments.
template <class Short, class Long, class... Arguments>
void launch_rows(const char* what, Device device, int64_t rows, int64_t n, Short short_rows, Long long_rows,
                 Arguments... arguments) {
  if (n <= kShortRow) {
    launch({what, blocks_for(rows, kRowsPerBlock), dim3(kWarp, kRowsPerBlock)}, device, short_rows, rows, n,
           arguments...);
  } else {
    launch({what, blocks_for(rows, 1), kRowThreads}, device, long_rows, rows, n, arguments...);
  }
}

}  // namespace brigade::kernels::cuda
