// CUDA kernels of embedding. Forward copies rows. Backward sorts the positions by row and sums the gradients of each
// row in position order: no atomics, and the same bits on each run.
#include <brigade/kernels/indexing.h>

#include <brigade/kernels/common/indexing.h>
#include <brigade/kernels/cuda/detail/index_check.h>
#include <brigade/kernels/cuda/detail/map.h>
#include <brigade/kernels/cuda/detail/sort_indices.h>
#include <brigade/kernels/elementwise.h>

#include <bit>

namespace brigade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr uint32_t kMostChunkThreads = 64;  // threads that share a row

// Thread (x, y) processes chunk x of row y, where a row is divided into chunks of one vector. grid.y covers the chunks
// of wide rows.
struct RowBlocks {
  dim3 grid, block;
};
RowBlocks row_blocks(int64_t rows, int64_t chunks) {
  const uint32_t x = std::bit_ceil(static_cast<uint32_t>(std::clamp<int64_t>(chunks, 1, kMostChunkThreads)));
  const uint32_t y = kThreads / x;
  const auto columns = static_cast<unsigned>(std::min<int64_t>((chunks + x - 1) / x, 65535));
  return {dim3(cuda::blocks_for(rows, y), columns), dim3(x, y)};
}

template <int bytes>
__global__ void __launch_bounds__(kThreads)
    gather_rows_kernel(int64_t count, int64_t chunks, cuda::IndexCheck check, const int64_t* indices,
                       const uint8_t* table, uint8_t* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (i >= count) return;
  const int64_t index = indices[i];
  const bool good = check(index, i);
  for (int64_t c = blockIdx.y * blockDim.x + threadIdx.x; c < chunks; c += gridDim.y * blockDim.x) {
    cuda::Vector<uint8_t, bytes> row{};
    if (good) row = cuda::load_vector<uint8_t, bytes>(table + (index * chunks + c) * bytes);
    cuda::store_vector<uint8_t, bytes>(out + (i * chunks + c) * bytes, row);
  }
}

// The sorted positions are divided into tiles of this length; a row that continues in the next tile is summed in parts.
constexpr uint32_t kSumTile = 256;

struct SortedRows {
  const uint32_t* keys;
  const uint32_t* positions;
  uint32_t count;  // number of positions
  uint32_t rows;
};

// sum += the gradients at sorted positions [begin, end), in order; `grad` points to the chunk.
template <int length, class T>
__device__ void add_places(const SortedRows& sorted, uint32_t begin, uint32_t end, int64_t width, const T* grad,
                           compute_type<T> (&sum)[length]) {
#pragma unroll 4
  for (uint32_t j = begin; j < end; ++j) {
    const auto x = cuda::load_vector<T, length>(grad + sorted.positions[j] * width);
#pragma unroll
    for (int k = 0; k < length; ++k)
      sum[k] += static_cast<compute_type<T>>(x.values[k]);
  }
}

// heads[tile]: the sum over the part of a row that began in an earlier tile, if there is one.
template <int length, class T>
__global__ void __launch_bounds__(kThreads)
    sum_heads_kernel(SortedRows sorted, int64_t chunks, const T* grad, compute_type<T>* heads) {
  using C = compute_type<T>;
  const uint32_t tile = blockIdx.x * blockDim.y + threadIdx.y;
  const uint64_t first = static_cast<uint64_t>(tile) * kSumTile;
  if (tile == 0 || first >= sorted.count) return;
  const auto begin = static_cast<uint32_t>(first);
  const uint32_t row = sorted.keys[begin];
  if (row != sorted.keys[begin - 1] || row >= sorted.rows) return;
  const uint32_t end = cuda::lower_bound(sorted.keys, begin, begin + ::min(kSumTile, sorted.count - begin), row + 1);
  const int64_t width = chunks * length;
  for (int64_t c = blockIdx.y * blockDim.x + threadIdx.x; c < chunks; c += gridDim.y * blockDim.x) {
    C sum[length] = {};
    add_places<length, T>(sorted, begin, end, width, grad + c * length, sum);
#pragma unroll
    for (int k = 0; k < length; ++k)
      heads[tile * width + c * length + k] = sum[k];
  }
}

// Sums each row: the existing values, the positions up to the end of their tile, then the heads of the tiles in which
// the row continues.
template <int length, class T>
__global__ void __launch_bounds__(kThreads)
    sum_sorted_rows_kernel(SortedRows sorted, int64_t chunks, cuda::AddRows how, const T* grad,
                           const compute_type<T>* heads, T* out) {
  using C = compute_type<T>;
  const uint32_t row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= sorted.rows) return;
  uint32_t begin = 0;
  uint32_t end = 0;
  if (row != how.padding_idx) {
    begin = cuda::lower_bound(sorted.keys, 0, sorted.count, row);
    end = cuda::lower_bound(sorted.keys, begin, sorted.count, row + 1);
  }
  if (how.accumulate && begin == end) return;
  const uint32_t next_tile = begin / kSumTile + 1;
  const uint32_t tiles_end = (end + kSumTile - 1) / kSumTile;
  const int64_t width = chunks * length;
  for (int64_t c = blockIdx.y * blockDim.x + threadIdx.x; c < chunks; c += gridDim.y * blockDim.x) {
    T* const target = out + row * width + c * length;
    cuda::Vector<T, length> y{};
    C sum[length] = {};
    if (how.accumulate) y = cuda::load_vector<T, length>(target);
    if (!how.mean) {
#pragma unroll
      for (int k = 0; k < length; ++k)
        sum[k] = static_cast<C>(y.values[k]);
    }
    add_places<length, T>(sorted, begin, ::min(end, next_tile * kSumTile), width, grad + c * length, sum);
    const C* head = heads + next_tile * width + c * length;
    for (uint32_t tile = next_tile; tile < tiles_end; ++tile, head += width) {
#pragma unroll
      for (int k = 0; k < length; ++k)
        sum[k] += head[k];
    }
    if (how.mean) {
      const C count = static_cast<C>(end > begin ? end - begin : 1);
#pragma unroll
      for (int k = 0; k < length; ++k)
        sum[k] = static_cast<C>(sum[k] / count + static_cast<C>(y.values[k]));
    }
#pragma unroll
    for (int k = 0; k < length; ++k)
      y.values[k] = static_cast<T>(sum[k]);
    cuda::store_vector<T, length>(target, y);
  }
}

template <int length, class T>
void sum_rows(const SortedRows& sorted, const Tensor& grad, const cuda::AddRows& how, const Tensor& result) {
  using C = compute_type<T>;
  const Device device = result.device();
  const int64_t width = result.size(1);
  const int64_t chunks = width / length;
  const int64_t tiles = (sorted.count + int64_t{kSumTile} - 1) / kSumTile;
  const Tensor head_sums = empty({std::max<int64_t>(tiles, 1), width}, {dtype_of<C>, device});
  const T* const slopes = static_cast<const T*>(grad.raw_data());
  C* const heads = static_cast<C*>(head_sums.raw_data());
  if (tiles > 1) {
    const RowBlocks blocks = row_blocks(tiles, chunks);
    cuda::launch({"embedding_backward", blocks.grid, blocks.block}, device, &sum_heads_kernel<length, T>, sorted,
                 chunks, slopes, heads);
  }
  const RowBlocks blocks = row_blocks(sorted.rows, chunks);
  cuda::launch({"embedding_backward", blocks.grid, blocks.block}, device, &sum_sorted_rows_kernel<length, T>, sorted,
               chunks, how, slopes, heads, static_cast<T*>(result.raw_data()));
}

Tensor embedding_cuda(const Tensor& weight, const Tensor& indices) {
  Tensor result = prepare_embedding(weight, indices);
  cuda::gather_rows(result, contiguous(weight), contiguous(indices), kEmbeddingIndex);
  return result;
}

Tensor embedding_backward_cuda(const Tensor& grad, const Tensor& indices, const EmbeddingGrad& options) {
  const Tensor result = prepare_embedding_backward(grad, indices, options);
  cuda::add_rows(result, contiguous(grad), contiguous(indices),
                 cuda::IndexCheck(grad.device(), kEmbeddingBackwardIndex, options.rows),
                 {.padding_idx = options.padding_idx,
                  .accumulate = options.accumulate && options.out.defined(),
                  .mean = options.mean_over_positions});
  return result;
}

const AddKernel add_embedding(embedding, kCUDA, &embedding_cuda);
const AddKernel add_embedding_backward(embedding_backward, kCUDA, &embedding_backward_cuda);

}  // namespace

void cuda::add_rows(const Tensor& table, const Tensor& source, const Tensor& indices, const IndexCheck& check,
                    const AddRows& how) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  const int64_t rows = table.sizes()[0];
  if (rows > kMost || indices.numel() > kMost) {
    throw ShapeError("embedding_backward: at most 2^31 - 1 rows and indices on a CUDA device, got {} and {}", rows,
                     indices.numel());
  }
  const SortedIndices order = sort_indices(indices, rows, check);
  const SortedRows sorted{order.key_data(), order.position_data(), static_cast<uint32_t>(indices.numel()),
                          static_cast<uint32_t>(rows)};
  visit_summable(table.dtype(), [&]<class T>() {
    constexpr int kLength = kVectorLength<T>;
    if (is_floating_point(dtype_of<T>) && table.size(1) % kLength == 0 &&
        is_aligned(static_cast<const T*>(source.raw_data()), kLength) &&
        is_aligned(static_cast<const T*>(table.raw_data()), kLength)) {
      if constexpr (is_floating_point(dtype_of<T>)) sum_rows<kLength, T>(sorted, source, how, table);
    } else {
      sum_rows<1, T>(sorted, source, how, table);
    }
  });
}

void cuda::gather_rows(const Tensor& out, const Tensor& table, const Tensor& indices, const IndexRole& role) {
  if (out.numel() == 0) return;
  const int64_t count = indices.numel();
  const int64_t row_bytes = static_cast<int64_t>(out.nbytes()) / count;
  const auto* const from = static_cast<const uint8_t*>(table.raw_data());
  auto* const to = static_cast<uint8_t*>(out.raw_data());
  const IndexCheck check(out.device(), role, table.sizes()[0]);
  const auto run = [&](int64_t bytes, auto kernel) {
    const RowBlocks blocks = row_blocks(count, row_bytes / bytes);
    launch({role.op, blocks.grid, blocks.block}, out.device(), kernel, count, row_bytes / bytes, check,
           static_cast<const int64_t*>(indices.raw_data()), from, to);
  };
  const auto all =
      static_cast<uintptr_t>(row_bytes) | reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to);
  switch (std::min<uintptr_t>(all & (~all + 1), kVectorBytes)) {  // the widest vector that divides all of them
    case 16: run(16, &gather_rows_kernel<16>); break;
    case 8: run(8, &gather_rows_kernel<8>); break;
    case 4: run(4, &gather_rows_kernel<4>); break;
    case 2: run(2, &gather_rows_kernel<2>); break;
    default: run(1, &gather_rows_kernel<1>); break;
  }
  brigade::cuda::throw_reported_if_blocking(out.device().index);
}

}  // namespace brigade::kernels
