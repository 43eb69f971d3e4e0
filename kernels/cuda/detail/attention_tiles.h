// Tiles of matrices for attention.cu: in shared memory, in the compute type, multiplied by 256 threads.
//
// The threads are 16 rows of 16, so that a row of threads is half a warp. In a product of two tiles, the thread in
// column x of row y computes R adjacent rows, from y * R on, and every 16th column, from x on. A warp thus reads a few
// whole rows of one tile, and 16 rows of the other, which begin in different banks.
#pragma once

#include <brigade/kernels/common/attention.h>
#include <brigade/kernels/cuda/detail/launch.h>
#include <brigade/kernels/cuda/detail/row_reduce.h>
#include <brigade/kernels/cuda/detail/vector.h>

#include <algorithm>

namespace brigade::kernels::cuda {

inline constexpr int kTileSide = 16;
inline constexpr int kTileThreads = kTileSide * kTileSide;

__device__ inline int tile_column() { return static_cast<int>(threadIdx.x) % kTileSide; }
__device__ inline int tile_row() { return static_cast<int>(threadIdx.x) / kTileSide; }

// Elements per shared memory access.
template <class C>
inline constexpr int kTileVector = kVectorBytes / static_cast<int>(sizeof(C));
// The row stride of a tile of `columns` columns.
template <class C>
constexpr int tile_stride(int columns) {
  return columns + kTileVector<C>;
}

// The matrices of an operand.
template <class T>
struct TileSource {
  const T* data;
  MatrixStrides strides;
  int width;
  bool vectors;  // whether rows are aligned to vectors and consist of whole vectors

  __device__ const T* matrix(const AttentionShape& shape, int64_t entry) const {
    return data + strides.start(shape, entry);
  }
};

// Rows [first, first + rows) of a matrix of `end` rows; zeros beyond its end and its width, up to D
// columns.
template <int rows, int D, class T, class C>
__device__ void load_tile(C* tile, const T* matrix, const TileSource<T>& source, int64_t first, int64_t end) {
  constexpr int kLength = kVectorBytes / static_cast<int>(sizeof(T));
  constexpr int kPerRow = D / kLength;
#pragma unroll 4
  for (int at = static_cast<int>(threadIdx.x); at < rows * kPerRow; at += kTileThreads) {
    const int row = at / kPerRow;
    const int column = at % kPerRow * kLength;
    Vector<T, kLength> from{};
    if (first + row < end && column < source.width) {
      const T* in = matrix + (first + row) * source.strides.row + column;
      if (source.vectors) {
        from = load_vector<T, kLength>(in);
      } else {
#pragma unroll
        for (int u = 0; u < kLength; ++u) {
          if (column + u < source.width) from.values[u] = in[u];
        }
      }
    }
    C* const to = tile + row * tile_stride<C>(D) + column;
#pragma unroll
    for (int part = 0; part < kLength; part += kTileVector<C>) {
      Vector<C, kTileVector<C>> values;
#pragma unroll
      for (int u = 0; u < kTileVector<C>; ++u)
        values.values[u] = static_cast<C>(from.values[part + u]);
      store_vector<C, kTileVector<C>>(to + part, values);
    }
  }
}

// products = a b^T for tiles of D columns, of which only the first `width` are used.
template <int D, int R, int N, class C>
__device__ void multiply_rows(C (&products)[R][N], const C* a, const C* b, int width) {
  constexpr int kLength = kTileVector<C>;
  const C* const a_rows = a + tile_row() * R * tile_stride<C>(D);
  const C* const b_rows = b + tile_column() * tile_stride<C>(D);
#pragma unroll
  for (int r = 0; r < R; ++r) {
#pragma unroll
    for (int n = 0; n < N; ++n)
      products[r][n] = C(0);
  }
#pragma unroll 1  // more loads in flight would not fit the registers of two blocks
  for (int k = 0; k < width; k += kLength) {
    Vector<C, kLength> x[R];
    Vector<C, kLength> y[N];
#pragma unroll
    for (int r = 0; r < R; ++r)
      x[r] = load_vector<C, kLength>(a_rows + r * tile_stride<C>(D) + k);
#pragma unroll
    for (int n = 0; n < N; ++n)
      y[n] = load_vector<C, kLength>(b_rows + n * kTileSide * tile_stride<C>(D) + k);
#pragma unroll
    for (int u = 0; u < kLength; ++u) {
#pragma unroll
      for (int r = 0; r < R; ++r) {
#pragma unroll
        for (int n = 0; n < N; ++n)
          products[r][n] += x[r].values[u] * y[n].values[u];
      }
    }
  }
}

// A thread holds D / 16 of the D columns of a result, in runs of adjacent columns: run c begins at column (c * 16 + x)
// * kRunLength.
template <int D, class C>
inline constexpr int kRunLength = std::min(D / kTileSide, kTileVector<C>);

// sums += weights b, where weights [.., J] is a tile that the warp wrote itself, and b [count .. J,
// D].
template <int D, int J, int R, class C>
__device__ void add_weighted_rows(C (&sums)[R][D / kTileSide], const C* weights, const C* b, int count) {
  constexpr int kLength = kTileVector<C>;
  constexpr int kRun = kRunLength<D, C>;
  const C* const weight_rows = weights + tile_row() * R * tile_stride<C>(J);
#pragma unroll 1
  for (int j = 0; j < count; j += kLength) {
    Vector<C, kLength> w[R];
#pragma unroll
    for (int r = 0; r < R; ++r)
      w[r] = load_vector<C, kLength>(weight_rows + r * tile_stride<C>(J) + j);
#pragma unroll
    for (int u = 0; u < kLength; ++u) {
      const C* const row = b + (j + u) * tile_stride<C>(D) + tile_column() * kRun;
#pragma unroll
      for (int c = 0; c < D / kTileSide; c += kRun) {
        const auto x = load_vector<C, kRun>(row + c * kTileSide);
#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
          for (int k = 0; k < kRun; ++k)
            sums[r][c + k] += w[r].values[u] * x.values[k];
        }
      }
    }
  }
}

// sums * factor to the rows [first, ..) of a dense matrix [end, width]; a factor per row.
template <int D, int R, class C, class T>
__device__ void store_rows(T* matrix, int64_t first, int64_t end, int width, const C (&sums)[R][D / kTileSide],
                           const C (&factors)[R]) {
  constexpr int kRun = kRunLength<D, C>;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int64_t row = first + tile_row() * R + r;
    if (row >= end) continue;
#pragma unroll
    for (int c = 0; c < D / kTileSide; c += kRun) {
      const int column = c * kTileSide + tile_column() * kRun;
      T* const to = matrix + row * width + column;
      Vector<T, kRun> values;
#pragma unroll
      for (int k = 0; k < kRun; ++k)
        values.values[k] = static_cast<T>(sums[r][c + k] * factors[r]);
      if (width % kRun == 0) {
        if (column < width) store_vector<T, kRun>(to, values);
      } else {
#pragma unroll
        for (int k = 0; k < kRun; ++k) {
          if (column + k < width) to[k] = values.values[k];
        }
      }
    }
  }
}

// Reduces over the 16 threads of a row; each gets the result.
template <class C, class F>
__device__ C reduce_tile_row(C value, F combine) {
#pragma unroll
  for (int offset = kTileSide / 2; offset > 0; offset /= 2)
    value = combine(value, shuffle_xor(value, offset));
  return value;
}

// Computes which probabilities of queries [query, query + queries) and keys [key, key + keys) dropout keeps: flags[i *
// query_step + j * key_step]. A thread generates the four numbers of a block of the stream.
template <int queries, int keys, int query_step, int key_step>
__device__ void make_kept_flags(unsigned char* flags, const KeptProbabilities& kept, const AttentionShape& shape,
                                int64_t entry, int64_t query, int64_t key) {
  constexpr int kBlocks = keys / 4 + 1;  // a row may begin inside a block of the stream
  for (int at = static_cast<int>(threadIdx.x); at < queries * kBlocks; at += kTileThreads) {
    const int i = at / kBlocks;
    const int64_t first = (entry * shape.queries + query + i) * shape.keys + key;
    const int64_t block = first / 4 + at % kBlocks;
    const auto words = kept.state.now().block(static_cast<uint64_t>(block));
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const int64_t j = block * 4 + w - first;
      if (j >= 0 && j < keys)
        flags[i * query_step + static_cast<int>(j) * key_step] =
            uniform_from_word(words[static_cast<size_t>(w)]) >= kept.threshold ? 1 : 0;
    }
  }
}

}  // namespace brigade::kernels::cuda

// The block's dynamic shared memory, 16-byte aligned. All kernels declare the same byte array: the compiler forbids one
// name with two types.
#ifdef __CUDACC__
#define BRIGADE_DYNAMIC_SHARED(T, name)                                          \
  extern __shared__ __align__(16) unsigned char brigade_dynamic_shared_memory[]; \
  T* const name = reinterpret_cast<T*>(brigade_dynamic_shared_memory)
#else
#define BRIGADE_DYNAMIC_SHARED(T, name) SIMT_DYNAMIC_SHARED(T, name)
#endif

namespace brigade::kernels::cuda {

// --- Dynamic shared memory, for more than the 48 KiB that a kernel can declare statically.

// The limit without opting in to more.
inline constexpr size_t kDefaultSharedBytes = size_t{48} << 10;

// As launch(). Throws CudaError if the device has less shared memory per block than requested.
template <class... Parameters, class... Arguments>
void launch_with_shared(const Launch& how, Device device, void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (how.shared_bytes > kDefaultSharedBytes) {
    const brigade::cuda::DeviceGuard guard(device.index);  // the attribute is set per device
    brigade::cuda::check(
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(how.shared_bytes)),
        "cudaFuncSetAttribute", how.where);
  }
  launch(how, device, kernel, std::forward<Arguments>(arguments)...);
}

}  // namespace brigade::kernels::cuda
