// CUDA kernels of nonzero: counts each tile, sums the counts, and lets each tile write where the preceding
// ones end. The host waits for the total in between to allocate the result.
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/cuda/detail/sort_indices.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/indexing.h>

namespace brigade::kernels {
namespace {

constexpr int kThreads = cuda::kSortThreads;
constexpr int64_t kTile = 4 * kThreads;

template <class T>
__device__ bool is_nonzero(const T* x, int64_t i, int64_t count) {
  return i < count && static_cast<compute_type<T>>(x[i]) != compute_type<T>(0);
}

// One block per tile.
template <class T>
__global__ void __launch_bounds__(kThreads) count_nonzero_kernel(int64_t count, const T* x, int64_t* counts) {
  BRIGADE_SHARED(uint32_t, partial, [kThreads / cuda::kWarp]);
  uint32_t found = 0;
  for (int64_t i = blockIdx.x * kTile + threadIdx.x; i < (blockIdx.x + int64_t{1}) * kTile; i += kThreads)
    found += is_nonzero(x, i, count) ? 1 : 0;
  const uint32_t total = cuda::block_reduce(found, cuda::SumOf{}, &partial[0]);
  if (threadIdx.x == 0) counts[blockIdx.x] = static_cast<int64_t>(total);
}

// Single block: replaces counts[i] by the sum of the preceding counts, and sets counts[tiles] to the total.
__global__ void __launch_bounds__(kThreads) sum_counts_kernel(int64_t tiles, int64_t* counts) {
  BRIGADE_SHARED(uint32_t, partial, [kThreads / cuda::kWarp]);
  int64_t base = 0;
  for (int64_t first = 0; first < tiles; first += kThreads) {
    const int64_t tile = first + threadIdx.x;
    uint32_t total = 0;
    const uint32_t before =
        cuda::block_exclusive_sum(tile < tiles ? static_cast<uint32_t>(counts[tile]) : 0, &partial[0], total);
    if (tile < tiles) counts[tile] = base + before;
    base += total;
  }
  if (threadIdx.x == 0) counts[tiles] = base;
}

struct Sizes {
  int dims;
  int64_t of[kMaxDims];
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    write_coordinates_kernel(int64_t count, Sizes sizes, const T* x, const int64_t* tiles_before, int64_t* out) {
  BRIGADE_SHARED(uint32_t, partial, [kThreads / cuda::kWarp]);
  int64_t place = tiles_before[blockIdx.x];
  for (int u = 0; u < kTile / kThreads; ++u) {
    const int64_t i = blockIdx.x * kTile + u * kThreads + threadIdx.x;
    const bool found = is_nonzero(x, i, count);
    uint32_t total = 0;
    const uint32_t before = cuda::block_exclusive_sum(found ? 1 : 0, &partial[0], total);
    if (found) {
      int64_t rest = i;
      for (int d = sizes.dims - 1; d >= 0; --d) {
        out[(place + before) * sizes.dims + d] = rest % sizes.of[d];
        rest /= sizes.of[d];
      }
    }
    place += total;
  }
}

Tensor nonzero_cuda(const Tensor& x) {
  const Device device = x.device();
  const Tensor dense = contiguous(x);
  const int64_t count = x.numel();
  const int64_t tiles = (count + kTile - 1) / kTile;
  Sizes sizes{x.dim(), {}};
  for (int d = 0; d < x.dim(); ++d)
    sizes.of[d] = x.sizes()[d];
  const Tensor counts = empty({tiles + 1}, {kInt64, device});
  auto* const sums = static_cast<int64_t*>(counts.raw_data());
  return visit_dtype(x.dtype(), [&]<class T>() {
    const T* const values = static_cast<const T*>(dense.raw_data());
    cuda::launch({"nonzero", static_cast<unsigned>(tiles), kThreads}, device, &count_nonzero_kernel<T>, count, values,
                 sums);
    cuda::launch({"nonzero", 1, kThreads}, device, &sum_counts_kernel, tiles, sums);
    Tensor total = empty({1}, kInt64);
    copy(total, view::as_strided(counts, {1}, {1}, tiles));
    Tensor result = empty({*total.data_ptr<int64_t>(), x.dim()}, {kInt64, device});
    if (result.numel() > 0) {
      cuda::launch({"nonzero", static_cast<unsigned>(tiles), kThreads}, device, &write_coordinates_kernel<T>, count,
                   sizes, values, sums, static_cast<int64_t*>(result.raw_data()));
    }
    return result;
  });
}

const AddKernel add_nonzero(nonzero, kCUDA, &nonzero_cuda);

}  // namespace
}  // namespace brigade::kernels
