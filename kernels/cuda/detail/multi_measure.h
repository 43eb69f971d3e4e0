// One number per row of a table: a sum or a maximum. Each block reduces a piece of a row; then a warp per row combines
// its pieces. The order is fixed, so results are bitwise reproducible.
//
// Computed in double: the square of a float32 does not overflow, and half types lose no bits.
#pragma once

#include <brigade/core/factory.h>
#include <brigade/kernels/cuda/detail/multi_tensor.h>
#include <brigade/kernels/cuda/detail/row_reduce.h>

namespace brigade::kernels::cuda {

// A measure: term(value, index in its row), and the combination of two terms. The term of a zero must be neutral.
struct SumOfSquares {
  __device__ static double term(double value, int64_t) { return value * value; }
  __device__ double operator()(double a, double b) const { return a + b; }
};

template <class T, class Measure>
__global__ void __launch_bounds__(kMultiThreads) measure_kernel(MultiTable<1> table, double* pieces) {
  constexpr int kLength = kVectorBytes / static_cast<int>(sizeof(T));
  const Piece piece = table.piece();
  const T* row = table.template at<const T>(0, piece.row);
  const bool vectors = is_aligned(row, kLength);
  const Measure measure{};
  double result = 0;
  for_vectors<kLength, kMultiUnroll>(piece, [&](auto count, int64_t at) {
    Vector<T, kLength> x[count.value];
#pragma unroll
    for (int u = 0; u < count.value; ++u)
      x[u] = load_padded<kLength>(row, at + u * kMultiStep<kLength>, piece.end, vectors);
#pragma unroll
    for (int u = 0; u < count.value; ++u) {
#pragma unroll
      for (int k = 0; k < kLength; ++k) {
        const double value = static_cast<double>(static_cast<compute_type<T>>(x[u].values[k]));
        result = measure(result, Measure::term(value, at + u * kMultiStep<kLength> + k));
      }
    }
  });
  BRIGADE_SHARED(double, partial, [kMultiThreads / kWarp]);
  result = block_reduce(result, measure, &partial[0]);
  if (threadIdx.x == 0) pieces[blockIdx.x] = result;
}

inline constexpr int kMeasureRowsPerBlock = 4;

template <class Measure>
__global__ void __launch_bounds__(kWarp* kMeasureRowsPerBlock)
    measure_rows_kernel(MultiTable<1> table, const double* pieces, double* results) {
  const int row = static_cast<int>(blockIdx.x) * kMeasureRowsPerBlock + static_cast<int>(threadIdx.y);
  if (row >= table.rows) return;  // returns whole warps
  const int32_t end = row + 1 < table.rows ? table.first_piece[row + 1] : table.pieces;
  const Measure measure{};
  double result = 0;
  for (int32_t i = table.first_piece[row] + static_cast<int32_t>(threadIdx.x); i < end; i += kWarp)
    result = measure(result, pieces[i]);
  result = warp_reduce(result, measure);
  if (threadIdx.x == 0) results[table.rows_before + row] = result;
}

// --- on the host

// results[i], float64 on `device`, for every row of T.
template <class T, class Measure>
void measure_rows(const char* name, Device device, std::span<const MultiRow<1>> rows, double* results,
                  std::source_location where = std::source_location::current()) {
  int64_t count = 0;  // at least the pieces of each table: the launches are serialized on the stream
  for (const MultiRow<1>& row : rows)
    count += pieces_of(row.numel);
  const Tensor partial = empty({count}, {kFloat64, device});
  double* pieces = static_cast<double*>(partial.raw_data());
  for_tables<1>(rows, [&](const MultiTable<1>& table) {
    launch({name, static_cast<unsigned>(table.pieces), kMultiThreads, 0, where}, device, &measure_kernel<T, Measure>,
           table, pieces);
    launch({name, blocks_for(table.rows, kMeasureRowsPerBlock), dim3(kWarp, kMeasureRowsPerBlock), 0, where}, device,
           &measure_rows_kernel<Measure>, table, pieces, results);
  });
}

}  // namespace brigade::kernels::cuda
