// The kernels of every reduction (kernels/common/reducers.h) over [outer, reduced, inner]. Long slices are split into
// pieces of a length that depends on the shape alone; a second kernel joins the results of the pieces in order.
#pragma once

#include <brigade/core/factory.h>
#include <brigade/kernels/common/reduce.h>
#include <brigade/kernels/common/reducers.h>
#include <brigade/kernels/cuda/detail/row_reduce.h>
#include <brigade/kernels/cuda/detail/vector.h>

#include <algorithm>

namespace brigade::kernels {

template <class C>
__device__ Moments<C> shuffle_xor(const Moments<C>& value, int lane_mask) {
  return {cuda::shuffle_xor(value.count, lane_mask), cuda::shuffle_xor(value.mean, lane_mask),
          cuda::shuffle_xor(value.squares, lane_mask)};
}

}  // namespace brigade::kernels

namespace brigade::kernels::cuda {

inline constexpr int kSliceThreads = 256;
inline constexpr int kSliceGroups = kSliceThreads / kWarp;
inline constexpr int64_t kShortSlice = 512;      // a warp's work
inline constexpr int64_t kSlicePiece = 1 << 14;  // of a single long row
inline constexpr int64_t kColumnPiece = 64;      // rows, at least
inline constexpr int64_t kSliceBlocks = 1024;    // enough for any device

// Stores the result of a piece for the second kernel, or the final result if there is only one piece.
template <class R>
struct SliceSink {
  R reducer;
  typename R::Value* pieces;  // null: store the result
  __device__ void operator()(int64_t i, const typename R::Value& value) const {
    if (pieces) {
      pieces[i] = value;
    } else {
      reducer.store(i, value);
    }
  }
};

template <class R>
struct JoinOf {
  R reducer;
  __device__ typename R::Value operator()(const typename R::Value& a, const typename R::Value& b) const {
    return reducer.join(a, b);
  }
};

// Row i is elements [i * length, (i + 1) * length) of `total`; the last may be shorter. A block takes one row, or one
// row per warp. Vectors start at the first aligned element.
template <class T, class R>
__global__ void __launch_bounds__(kSliceThreads)
    reduce_rows_kernel(int64_t rows, int64_t length, int64_t total, const T* x, SliceSink<R> sink) {
  constexpr int kLength = kVectorBytes / static_cast<int>(sizeof(T));
  using Value = typename R::Value;
  using Element = compute_type<T>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;  // returns whole warps
  const T* first = x + row * length;
  const int64_t n = ::min(length, total - row * length);
  const auto misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(first) % kVectorBytes / sizeof(T));
  const int64_t head = ::min(n, misaligned == 0 ? int64_t{0} : kLength - misaligned);
  const int64_t vectors_end = head + (n - head) / kLength * kLength;
  Value value = sink.reducer.nothing();
  if (threadIdx.x < head) value = sink.reducer.add(value, static_cast<Element>(first[threadIdx.x]));
#pragma unroll 4
  for (int64_t i = head + threadIdx.x * kLength; i < vectors_end; i += blockDim.x * kLength) {
    const auto vector = load_vector<T, kLength>(first + i);
#pragma unroll
    for (int k = 0; k < kLength; ++k)
      value = sink.reducer.add(value, static_cast<Element>(vector.values[k]));
  }
  if (vectors_end + threadIdx.x < n)
    value = sink.reducer.add(value, static_cast<Element>(first[vectors_end + threadIdx.x]));
  const JoinOf<R> join{sink.reducer};
  if (blockDim.x == kWarp) {
    value = warp_reduce(value, join);
  } else {
    BRIGADE_SHARED(Value, partial, [kSliceThreads / kWarp]);
    value = block_reduce(value, join, &partial[0]);
  }
  if (threadIdx.x == 0) sink(row, value);
}

// x [outer, reduced, inner]; piece p of a column goes to [outer, pieces, inner]. A block takes kWarp columns; each of
// its groups takes every kSliceGroups-th row of a piece.
template <class T, class R>
__global__ void __launch_bounds__(kSliceThreads)
    reduce_columns_kernel(int64_t reduced, int64_t inner, int64_t piece, const T* x, SliceSink<R> sink) {
  using Value = typename R::Value;
  BRIGADE_SHARED(Value, partial, [kSliceGroups][kWarp]);
  const int64_t strips = (inner + kWarp - 1) / kWarp;
  const int64_t o = blockIdx.x / strips;
  const int64_t column = blockIdx.x % strips * kWarp + threadIdx.x;
  const int64_t end = ::min(reduced, (blockIdx.y + 1) * piece);
  Value value = sink.reducer.nothing();
  if (column < inner) {
#pragma unroll 4
    for (int64_t r = blockIdx.y * piece + threadIdx.y; r < end; r += kSliceGroups)
      value = sink.reducer.add(value, static_cast<compute_type<T>>(x[(o * reduced + r) * inner + column]));
  }
  partial[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  if (threadIdx.y != 0 || column >= inner) return;
  for (int g = 1; g < kSliceGroups; ++g)
    value = sink.reducer.join(value, partial[g][threadIdx.x]);
  sink((o * gridDim.y + blockIdx.y) * inner + column, value);
}

// Joins pieces [outer, pieces, inner] with one thread per slice.
template <class R>
__global__ void __launch_bounds__(kSliceThreads)
    join_pieces_kernel(int64_t slices, int64_t pieces, int64_t inner, const typename R::Value* from, R reducer) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kSliceThreads + threadIdx.x;
  if (i >= slices) return;
  const typename R::Value* first = from + i / inner * pieces * inner + i % inner;
  auto value = first[0];
  for (int64_t p = 1; p < pieces; ++p)
    value = reducer.join(value, first[p * inner]);
  reducer.store(i, value);
}

// --- on the host

template <class T, class R>
void reduce_slices(const char* what, const ReductionPlan& r, const R& reducer) {
  const Device device = r.out.device();
  const T* x = static_cast<const T*>(r.x.raw_data());
  const int64_t slices = r.outer * r.inner;
  if (slices == 0) return;
  const bool is_columns = r.inner > 1;
  const int64_t blocks = is_columns ? r.outer * ((r.inner + kWarp - 1) / kWarp) : r.outer;
  int64_t piece = r.reduced;
  if (is_columns) {
    const int64_t wanted =
        std::clamp<int64_t>(r.reduced / kColumnPiece, 1, std::max<int64_t>(1, kSliceBlocks / blocks));
    piece = (r.reduced + wanted - 1) / wanted;
  } else if (r.outer == 1 && r.reduced > 2 * kSlicePiece) {
    piece = kSlicePiece;
  }
  const int64_t pieces = piece == 0 ? 1 : (r.reduced + piece - 1) / piece;
  const Tensor room =
      empty({pieces > 1 ? slices * pieces : 0, static_cast<int64_t>(sizeof(typename R::Value))}, {kUInt8, device});
  const SliceSink<R> sink{reducer, pieces > 1 ? static_cast<typename R::Value*>(room.raw_data()) : nullptr};
  if (is_columns) {
    launch({what, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(pieces)), dim3(kWarp, kSliceGroups)},
           device, &reduce_columns_kernel<T, R>, r.reduced, r.inner, piece, x, sink);
  } else {
    const bool is_short = piece <= kShortSlice;
    const int64_t rows = r.outer * pieces;
    launch({what, is_short ? blocks_for(rows, kSliceGroups) : blocks_for(rows, 1),
            is_short ? dim3(kWarp, kSliceGroups) : dim3(kSliceThreads)},
           device, &reduce_rows_kernel<T, R>, rows, piece, r.outer * r.reduced, x, sink);
  }
  if (pieces > 1) {
    launch({what, blocks_for(slices, kSliceThreads), kSliceThreads}, device, &join_pieces_kernel<R>, slices, pieces,
           r.inner, sink.pieces, reducer);
  }
}

}  // namespace brigade::kernels::cuda
