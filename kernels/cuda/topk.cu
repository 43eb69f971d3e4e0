// CUDA kernels of topk. A block processes a row: it finds the k-th key byte by byte, highest first, by counting the
// remaining candidates; collects the elements before that key and the first of its equals; and sorts these in shared
// memory. (After Alabi, Blanchard, Gordon and Steinbach, "Fast k-selection algorithms for graphics processing units",
// 2012: radixSelect.) For more than kMostKept, whole rows are sorted.
#include <brigade/kernels/indexing.h>

#include <brigade/kernels/common/indexing.h>
#include <brigade/kernels/cuda/detail/bitonic.h>
#include <brigade/kernels/cuda/detail/sort_indices.h>
#include <brigade/kernels/cuda/detail/sorted_slices.h>

#include <bit>

namespace brigade::kernels {
namespace {

constexpr int kThreads = cuda::kSortThreads;
constexpr uint32_t kMostKept = 1024;
constexpr int kItems = 4;  // adjacent elements per thread

template <class Key>
struct Kth {
  Key key;
  uint32_t equals;  // number of elements with this key among the first k
};

// Every thread gets the result. `counts` has one entry per digit and thread.
template <class T>
__device__ Kth<sort_key<T>> find_kth(const T* row, int64_t n, uint32_t k, bool descending, uint32_t* counts,
                                     uint32_t* partial, uint32_t* found) {
  using Key = sort_key<T>;
  Kth<Key> kth{0, k};
  Key known = 0;  // mask of the bits determined so far
  for (int shift = 8 * static_cast<int>(sizeof(Key)) - cuda::kDigitBits; shift >= 0; shift -= cuda::kDigitBits) {
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t j = threadIdx.x; j < n; j += kThreads) {
      const Key key = sort_key_of(row[j], descending);
      if ((key & known) == kth.key) atomicAdd(&counts[static_cast<uint32_t>(key >> shift) & 255U], 1U);
    }
    __syncthreads();
    const uint32_t own = counts[threadIdx.x];
    uint32_t total = 0;
    const uint32_t before = cuda::block_exclusive_sum(own, partial, total);
    if (before < kth.equals && kth.equals <= before + own) {
      found[0] = threadIdx.x;
      found[1] = kth.equals - before;
    }
    __syncthreads();
    kth.key |= static_cast<Key>(found[0]) << shift;
    kth.equals = found[1];
    known |= static_cast<Key>(255) << shift;
    __syncthreads();
  }
  return kth;
}

// `room` is a power of two, at least k.
template <class T>
__global__ void __launch_bounds__(kThreads)
    topk_kernel(int64_t n, uint32_t k, uint32_t room, bool descending, const T* x, T* values, int64_t* indices) {
  using Key = sort_key<T>;
  constexpr bool kWide = sizeof(Key) == 8;
  BRIGADE_SHARED(uint64_t, keys, [kMostKept]);
  BRIGADE_SHARED(uint32_t, positions, [kWide ? kMostKept : 1]);
  BRIGADE_SHARED(uint32_t, counts, [kThreads]);
  BRIGADE_SHARED(uint32_t, partial, [cuda::kSortWarps]);
  BRIGADE_SHARED(uint32_t, found, [2]);
  const T* const row = x + blockIdx.x * n;
  const Kth<Key> kth = find_kth(row, n, k, descending, &counts[0], &partial[0], &found[0]);
  cuda::SortEntries<Key> entries(&keys[0], &positions[0]);
  for (uint32_t i = k + threadIdx.x; i < room; i += kThreads)
    entries.set(i, static_cast<Key>(~Key{0}), 0xffffffffU);
  // Two counts in one word: elements before the k-th key in the low half, its equals in the high half.
  constexpr uint32_t kEqual = 1U << 16;
  uint32_t smaller = 0;
  uint32_t equal = 0;
  for (int64_t tile = 0; tile < n; tile += int64_t{kThreads} * kItems) {
    const int64_t first = tile + threadIdx.x * kItems;
    Key mine[kItems];
    uint32_t own = 0;
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      mine[u] = 0;
      if (first + u >= n) continue;
      mine[u] = sort_key_of(row[first + u], descending);
      own += mine[u] < kth.key ? 1U : mine[u] == kth.key ? kEqual : 0U;
    }
    uint32_t total = 0;
    const uint32_t before = cuda::block_exclusive_sum(own, &partial[0], total);
    uint32_t smaller_at = smaller + before % kEqual;
    uint32_t equal_at = equal + before / kEqual;
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      if (first + u >= n) continue;
      const auto position = static_cast<uint32_t>(first + u);
      if (mine[u] < kth.key) {
        entries.set(smaller_at++, mine[u], position);
      } else if (mine[u] == kth.key && equal_at < kth.equals) {
        entries.set(k - kth.equals + equal_at++, mine[u], position);
      }
    }
    smaller += total % kEqual;
    equal += total / kEqual;
  }
  __syncthreads();
  cuda::bitonic_sort(entries, room, room);
  for (uint32_t i = threadIdx.x; i < k; i += kThreads) {
    const uint32_t from = entries.position(i);
    values[blockIdx.x * static_cast<int64_t>(k) + i] = row[from];
    indices[blockIdx.x * static_cast<int64_t>(k) + i] = from;
  }
}

void topk_rows(const Tensor& x, bool descending, const Sorted& out) {
  const int64_t n = x.sizes().back();
  const int64_t k = out.values.sizes().back();
  if (k > kMostKept || n > 0xfffffffeLL) {
    const Sorted all{empty(x.sizes(), x.options()), empty(x.sizes(), out.indices.options())};
    cuda::sort_rows(x, descending, all);
    copy(out.values, view::slice(all.values, 1, 0, k));
    copy(out.indices, view::slice(all.indices, 1, 0, k));
    return;
  }
  visit_dtype(x.dtype(), [&]<class T>() {
    cuda::launch({"topk", static_cast<unsigned>(x.sizes()[0]), kThreads}, x.device(), &topk_kernel<T>, n,
                 static_cast<uint32_t>(k), std::bit_ceil(static_cast<uint32_t>(k)), descending,
                 static_cast<const T*>(x.raw_data()), static_cast<T*>(out.values.raw_data()),
                 static_cast<int64_t*>(out.indices.raw_data()));
  });
}

Sorted topk_cuda(const Tensor& x, int64_t k, int dim, bool largest) {
  const SortPlan plan = prepare_topk(x, k, dim);
  if (plan.result.values.numel() > 0)
    cuda::with_rows(plan, [&](const Tensor& rows, const Sorted& out) { topk_rows(rows, largest, out); });
  return plan.result;
}

const AddKernel add_topk(topk, kCUDA, &topk_cuda);

}  // namespace
}  // namespace brigade::kernels
