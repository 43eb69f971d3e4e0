// Reductions within a warp and within a block, in an order that does not depend on timing.
#pragma once

#include <brigade/kernels/cuda/detail/launch.h>

#include <cmath>
#include <limits>

#ifdef __CUDACC__
#define BRIGADE_SHARED(T, name, dims) __shared__ T name dims
#else
#define BRIGADE_SHARED(T, name, dims) SIMT_SHARED(T, name, dims)
#endif

namespace brigade::kernels::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kFullWarp = 0xffffffffU;

struct SumOf {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a + b;
  }
};

// The running maximum, and the sum of exp(x - maximum) so far: softmax in one pass (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", arXiv 1805.02867).
template <class C>
struct MaxAndSum {
  C max;
  C sum;
};
template <class C>
__device__ MaxAndSum<C> nothing_seen() {
  return {-std::numeric_limits<C>::infinity(), C(0)};
}
// Returns `seen` with `values` added.
template <int n, class C>
__device__ MaxAndSum<C> with_values(const MaxAndSum<C>& seen, const C (&values)[n]) {
  constexpr C kLowest = -std::numeric_limits<C>::infinity();
  C max = seen.max;
#pragma unroll
  for (int k = 0; k < n; ++k)
    max = values[k] > max ? values[k] : max;
  // For only -inf values the sum is 0, not exp(-inf + inf). NaNs always reach the sum, and +inf makes it NaN.
  const C shift = max == kLowest ? C(0) : max;
  C sum = seen.sum == C(0) ? C(0) : seen.sum * std::exp(seen.max - shift);
#pragma unroll
  for (int k = 0; k < n; ++k)
    sum += std::exp(values[k] - shift);
  return {max, sum};
}
struct MergeMaxAndSum {
  template <class C>
  __device__ MaxAndSum<C> operator()(const MaxAndSum<C>& a, const MaxAndSum<C>& b) const {
    const C max = a.max > b.max || a.max != a.max ? a.max : b.max;
    // A side without elements has sum 0 and maximum -inf: its factor would be exp(-inf + inf).
    const C left = a.sum == C(0) ? C(0) : a.sum * std::exp(a.max - max);
    const C right = b.sum == C(0) ? C(0) : b.sum * std::exp(b.max - max);
    return {max, left + right};
  }
};

template <class C>
__device__ C shuffle_xor(C value, int lane_mask) {
  return __shfl_xor_sync(kFullWarp, value, lane_mask);
}
template <class C>
__device__ MaxAndSum<C> shuffle_xor(const MaxAndSum<C>& value, int lane_mask) {
  return {__shfl_xor_sync(kFullWarp, value.max, lane_mask), __shfl_xor_sync(kFullWarp, value.sum, lane_mask)};
}

// Reduces over the 32 lanes of a full warp; every lane gets the result.
template <class V, class F>
__device__ V warp_reduce(V value, F combine) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const V other = shuffle_xor(value, offset);
    // The lower lane is the left operand, so that both lanes compute the same bits.
    value = (threadIdx.x & static_cast<unsigned>(offset)) == 0 ? combine(value, other) : combine(other, value);
  }
  return value;
}

// Reduces over a block of whole warps; every thread gets the result. `partial` has space for one value per warp, and
// may be reused after the call.
template <class V, class F>
__device__ V block_reduce(V value, F combine, V* partial) {
  value = warp_reduce(value, combine);
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
  V result = partial[0];
  for (int w = 1; w < warps; ++w)
    result = combine(result, partial[w]);
  __syncthreads();
  return result;
}

}  // namespace brigade::kernels::cuda
