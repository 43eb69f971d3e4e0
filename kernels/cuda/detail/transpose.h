// Copies between two layouts that are dense along different dimensions: a matrix and its transpose, NCHW and NHWC,
// permuted heads of attention. In an elementwise copy, the accesses on one side would not be coalesced. Here a block
// reads a tile along one dimension into shared memory and writes it along the other, so that both sides are coalesced
// (Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA", NVIDIA 2009). Elements are moved as bits, so NaN
// payloads are kept.
#pragma once

#include <brigade/kernels/cuda/detail/map.h>
#include <brigade/kernels/cuda/detail/row_reduce.h>

namespace brigade::kernels::cuda {

inline constexpr int kTransposeRows = 8;      // rows that a block processes at once, one per warp
inline constexpr int64_t kTransposeMin = 16;  // least elements per dimension; with fewer, most of a tile is empty
// The side of a tile, larger for small elements: enough bytes in flight, and whole sectors of
// memory per warp.
template <class Bits>
inline constexpr int kTransposeTile = sizeof(Bits) <= 2 ? 64 : 32;

// One of the matrices: dense along its columns in the source, along its rows in the target. row_stride is between its
// rows in the source, column_stride between its columns in the target.
struct TransposedMatrix {
  uint32_t rows, columns;
  int64_t row_stride, column_stride;
};

// A block per tile: tiles along the rows first, then along the columns, then the matrices of the
// batch.
template <class Bits>
__global__ void __launch_bounds__(kWarp* kTransposeRows)
    transpose_kernel(DeviceStrides<2> batch, TransposedMatrix matrix, const Bits* from, Bits* to) {
  constexpr uint32_t kTile = kTransposeTile<Bits>;
  constexpr int kPadding = sizeof(Bits) < 4 ? 4 / sizeof(Bits) : 1;  // tile columns use distinct banks
  BRIGADE_SHARED(Bits, tile, [kTile][kTile + kPadding]);
  const uint32_t row_tiles = (matrix.rows + kTile - 1) / kTile;
  const uint32_t column_tiles = (matrix.columns + kTile - 1) / kTile;
  const uint32_t row = blockIdx.x % row_tiles * kTile;
  const uint32_t column = blockIdx.x / row_tiles % column_tiles * kTile;
  int64_t at[2];
  batch.offsets(blockIdx.x / row_tiles / column_tiles, at);
  const uint32_t rows = ::min(kTile, matrix.rows - row);
  const uint32_t columns = ::min(kTile, matrix.columns - column);
  from += at[0] + row * matrix.row_stride + column;
  to += at[1] + column * matrix.column_stride + row;
  // Issues all loads of a thread before using the first. Elements outside the matrix are not written.
  constexpr uint32_t kDown = kTile / kTransposeRows;
  constexpr uint32_t kAcross = kTile / kWarp;
  Bits held[kDown][kAcross];
#pragma unroll
  for (uint32_t i = 0; i < kDown; ++i) {
#pragma unroll
    for (uint32_t j = 0; j < kAcross; ++j) {
      const uint32_t r = i * kTransposeRows + threadIdx.y;
      const uint32_t c = j * kWarp + threadIdx.x;
      held[i][j] = r < rows && c < columns ? from[r * matrix.row_stride + c] : Bits{0};
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < kDown; ++i) {
#pragma unroll
    for (uint32_t j = 0; j < kAcross; ++j)
      tile[i * kTransposeRows + threadIdx.y][j * kWarp + threadIdx.x] = held[i][j];
  }
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < kDown; ++i) {
#pragma unroll
    for (uint32_t j = 0; j < kAcross; ++j) {
      const uint32_t c = i * kTransposeRows + threadIdx.y;
      const uint32_t r = j * kWarp + threadIdx.x;
      if (r < rows && c < columns) to[c * matrix.column_stride + r] = tile[r][c];
    }
  }
}

// --- on the host

// Moves the dimension along which the source (operand 0) is dense to the end, and before it the one along which the
// target (operand 1) is. Returns false and leaves the layout unchanged if that is the same dimension, or if one is
// missing or short.
inline bool order_for_transpose(StridedLayout<2>& layout) {
  const auto dense_along = [&](int operand) {
    int found = -1;
    for (int d = 0; d < layout.sizes.size(); ++d) {
      if (layout.strides[static_cast<size_t>(operand)][d] == 1 && layout.sizes[d] >= kTransposeMin) found = d;
    }
    return found;
  };
  const int columns = dense_along(0);
  const int rows = dense_along(1);
  if (columns < 0 || rows < 0 || layout.strides[0][rows] == 1 || layout.strides[1][columns] == 1) return false;
  const auto to_end = [&](Shape& values) {
    const int64_t of_rows = values[rows];
    const int64_t of_columns = values[columns];
    values.erase(std::max(rows, columns));
    values.erase(std::min(rows, columns));
    values.push_back(of_rows);
    values.push_back(of_columns);
  };
  to_end(layout.sizes);
  to_end(layout.strides[0]);
  to_end(layout.strides[1]);
  return true;
}

template <class Bits>
void launch_transpose(Device device, const StridedLayout<2>& ordered, const void* source, void* target) {
  for (const StridedPart<2>& part : strided_parts<2>(ordered)) {
    DeviceStrides<2> strides = part.strides;
    const int rows = strides.dims - 2;
    const int columns = strides.dims - 1;
    strides.dims -= 2;  // the others are the batch
    const TransposedMatrix matrix{strides.sizes[rows], strides.sizes[columns], strides.strides[0][rows],
                                  strides.strides[1][columns]};
    const unsigned batch = part.count / matrix.rows / matrix.columns;
    // A part has fewer than 2^31 elements and no tile is empty, so the x dimension of the grid can hold all blocks.
    const unsigned blocks =
        blocks_for(matrix.rows, kTransposeTile<Bits>) * blocks_for(matrix.columns, kTransposeTile<Bits>) * batch;
    launch({"copy_transposed", blocks, dim3(kWarp, kTransposeRows)}, device, &transpose_kernel<Bits>, strides, matrix,
           static_cast<const Bits*>(source) + part.offsets[0], static_cast<Bits*>(target) + part.offsets[1]);
  }
}

// out = x, of one dtype and device, with x broadcast to the shape of out, if they are dense along different dimensions
// of at least kTransposeMin elements; else returns false without doing anything.
inline bool copy_transposed(const Tensor& out, const Tensor& x) {
  StridedLayout<2> layout(out.sizes(), {&x, &out});
  if (!order_for_transpose(layout)) return false;
  const auto run = [&]<class Bits>(Bits) {
    launch_transpose<Bits>(out.device(), layout, x.raw_data(), out.raw_data());
  };
  switch (itemsize(out.dtype())) {
    case 1: run(uint8_t{}); break;
    case 2: run(uint16_t{}); break;
    case 4: run(uint32_t{}); break;
    default: run(uint64_t{}); break;
  }
  return true;
}

}  // namespace brigade::kernels::cuda
