// One launch for many tensors: a table of rows (one row per tensor and its companions, all of one length) travels in
// the kernel's parameters, and each block takes a piece of a row, so that rows of very different lengths are balanced.
//
// More rows than fit in a table take several launches: parameters arrive with the launch, while a table in device
// memory would have to be copied first.
#pragma once

#include <brigade/kernels/cuda/detail/vector.h>

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>
#include <utility>

namespace brigade::kernels::cuda {

inline constexpr int kMultiThreads = 256;
inline constexpr int64_t kPiece = 8192;   // elements per block
inline constexpr int kTableBytes = 3840;  // of the 4 KiB for parameters
inline constexpr int kMultiUnroll = 4;    // vectors in flight per thread if one array is read

// On the host: `data` are the arrays of a row, `numel` elements each.
template <int arrays>
struct MultiRow {
  std::array<void*, arrays> data;
  int64_t numel;
};

struct Piece {
  int row;  // index in the table
  int64_t begin, end;
};

template <int arrays>
struct MultiTable {
  static constexpr int kCapacity = (kTableBytes - 32) / (arrays * 8 + 12);

  void* data[arrays][kCapacity];
  int64_t numel[kCapacity];
  int32_t first_piece[kCapacity];  // of this launch
  int32_t rows;
  int32_t pieces;
  int64_t rows_before;  // in earlier launches

  // The piece of this block.
  __device__ Piece piece() const {
    const int32_t block = static_cast<int32_t>(blockIdx.x);
    int low = 0;  // the last row whose first piece is not after `block`: skips rows without pieces
    for (int high = rows; high - low > 1;) {
      const int middle = (low + high) / 2;
      (first_piece[middle] <= block ? low : high) = middle;
    }
    const int64_t begin = (block - first_piece[low]) * kPiece;
    return {low, begin, ::min(numel[low], begin + kPiece)};
  }
  template <class T>
  __device__ T* at(int array, int row) const {
    return static_cast<T*>(data[array][row]);
  }
};

// Calls body(integral_constant count, at) until all elements of the piece are processed: the thread's next `count`
// vectors start at `at`, `at` + kMultiStep<length>, ...; all whole when count > 1. The assignment of elements to
// threads depends on the length of the row alone.
template <int length>
inline constexpr int64_t kMultiStep = int64_t{kMultiThreads} * length;
template <int length, int unroll, class Body>
__device__ void for_vectors(const Piece& piece, Body&& body) {
  int64_t at = piece.begin + static_cast<int64_t>(threadIdx.x) * length;
  if constexpr (unroll > 1) {
    for (; at + (unroll - 1) * kMultiStep<length> + length <= piece.end; at += unroll * kMultiStep<length>)
      body(std::integral_constant<int, unroll>(), at);
  }
  for (; at < piece.end; at += kMultiStep<length>)
    body(std::integral_constant<int, 1>(), at);
}

// Elements [at, at + length) of a row; zeros for those past `end`. `vectors`: whether the row is
// aligned for them.
template <int length, class T>
__device__ Vector<T, length> load_padded(const T* row, int64_t at, int64_t end, bool vectors) {
  if (vectors && at + length <= end) return load_vector<T, length>(row + at);
  Vector<T, length> result;
#pragma unroll
  for (int k = 0; k < length; ++k)
    result.values[k] = at + k < end ? row[at + k] : T(0.0F);
  return result;
}
template <int length, class T>
__device__ void store_padded(T* row, int64_t at, int64_t end, bool vectors, const Vector<T, length>& values) {
  if (vectors && at + length <= end) {
    store_vector<T, length>(row + at, values);
    return;
  }
#pragma unroll
  for (int k = 0; k < length; ++k) {
    if (at + k < end) row[at + k] = values.values[k];
  }
}

// --- on the host

inline int64_t pieces_of(int64_t numel) { return (numel + kPiece - 1) / kPiece; }

// Calls run(table) for tables that hold all rows, in order.
template <int arrays, class Run>
void for_tables(std::span<const MultiRow<arrays>> rows, Run&& run) {
  using Table = MultiTable<arrays>;
  static_assert(sizeof(Table) <= kTableBytes);
  Table table;
  table.rows_before = 0;
  while (!rows.empty()) {
    table.rows = static_cast<int32_t>(std::min<size_t>(rows.size(), Table::kCapacity));
    table.pieces = 0;
    for (int i = 0; i < table.rows; ++i) {
      const MultiRow<arrays>& row = rows[static_cast<size_t>(i)];
      for (int a = 0; a < arrays; ++a)
        table.data[a][i] = row.data[static_cast<size_t>(a)];
      table.numel[i] = row.numel;
      table.first_piece[i] = table.pieces;
      table.pieces += static_cast<int32_t>(pieces_of(row.numel));
    }
    run(std::as_const(table));
    table.rows_before += table.rows;
    rows = rows.subspan(static_cast<size_t>(table.rows));
  }
}

}  // namespace brigade::kernels::cuda
