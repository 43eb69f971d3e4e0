// Correct kernels of the common kinds, for nvcc and for the emulation.
#pragma once

#include <simt/device.h>

template <class T>
__device__ inline float to_float(T x) {
  return static_cast<float>(x);
}

__device__ inline float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// A grid-stride loop over x; each block adds its partial sum to *sum.
template <class T>
__global__ void block_sum(const T* x, float* sum, int n) {
  SIMT_SHARED(float, partial, [32]);
  float value = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    value += to_float(x[i]);
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = warp_sum(threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) atomicAdd(sum, value);
  }
}

// Inclusive prefix sums within each group of `width` lanes.
template <int width>
__global__ void scan(const int* x, int* y) {
  const int lane = threadIdx.x % width;
  int value = x[threadIdx.x];
  for (int offset = 1; offset < width; offset *= 2) {
    const int below = __shfl_up_sync(0xffffffffu, value, offset, width);
    if (lane >= offset) value += below;
  }
  y[threadIdx.x] = value;
}

// y = a * x + y, rounded once.
__global__ void axpy_pairs(__half a, const __half2* x, __half2* y, int pairs) {
  const __half2 factor = __half2half2(a);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += gridDim.x * blockDim.x)
    y[i] = __hfma2(factor, x[i], y[i]);
}

// y = exp(x) / sqrt(x) in the type's own arithmetic.
template <class T>
__global__ void half_functions(const T* x, T* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = hexp(x[i]) * hrsqrt(x[i]);
}

template <class T>
struct alignas(16) SixteenBytes {
  T values[16 / sizeof(T)];
};

// c = a + b, 16 bytes at a time.
template <class T>
__global__ void add_vectors(const T* a, const T* b, T* c, int n) {
  constexpr int kWidth = 16 / sizeof(T);
  const int step = gridDim.x * blockDim.x * kWidth;
  for (int i = (blockIdx.x * blockDim.x + threadIdx.x) * kWidth; i < n; i += step) {
    const auto x = simt::load_vector<SixteenBytes<T>>(a + i);
    auto y = simt::load_vector<SixteenBytes<T>>(b + i);
    for (int k = 0; k < kWidth; ++k)
      y.values[k] = x.values[k] + y.values[k];
    simt::store_vector(c + i, y);
  }
}

// A block normalizes one row, which it keeps in dynamic shared memory.
template <class T>
__global__ void layer_norm(const T* x, const float* weight, const float* bias, T* y, int columns, float epsilon) {
  SIMT_DYNAMIC_SHARED(float, row);
  SIMT_SHARED(float, partial, [2][32]);
  x += static_cast<size_t>(blockIdx.x) * columns;
  y += static_cast<size_t>(blockIdx.x) * columns;
  float sum = 0;
  float squares = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    row[i] = to_float(x[i]);
    sum += row[i];
    squares += row[i] * row[i];
  }
  sum = warp_sum(sum);
  squares = warp_sum(squares);
  if (threadIdx.x % 32 == 0) {
    partial[0][threadIdx.x / 32] = sum;
    partial[1][threadIdx.x / 32] = squares;
  }
  __syncthreads();
  sum = squares = 0;
  for (int i = 0; i < static_cast<int>(blockDim.x / 32); ++i) {
    sum += partial[0][i];
    squares += partial[1][i];
  }
  const float mean = sum / columns;
  const float scale = rsqrtf(squares / columns - mean * mean + epsilon);
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    y[i] = static_cast<T>((row[i] - mean) * scale * weight[i] + bias[i]);
}

// c[m, n] = a[m, k] b[k, n]; a block computes a tile, a thread one element.
template <class T, int kTile>
__global__ void tiled_matmul(const T* a, const T* b, T* c, int m, int n, int k) {
  SIMT_SHARED(T, tile_a, [kTile][kTile + 1]);
  SIMT_SHARED(T, tile_b, [kTile][kTile + 1]);
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const int row = blockIdx.y * kTile + y;
  const int column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int begin = 0; begin < k; begin += kTile) {
    tile_a[y][x] = row < m && begin + x < k ? a[static_cast<size_t>(row) * k + begin + x] : static_cast<T>(0.0f);
    tile_b[y][x] = column < n && begin + y < k ? b[static_cast<size_t>(begin + y) * n + column] : static_cast<T>(0.0f);
    __syncthreads();
    for (int i = 0; i < kTile; ++i)
      sum += to_float(tile_a[y][i]) * to_float(tile_b[i][x]);
    __syncthreads();
  }
  if (row < m && column < n) c[static_cast<size_t>(row) * n + column] = static_cast<T>(sum);
}

// A histogram of 64 bins, accumulated in the block's shared memory first.
__global__ void histogram(const int* x, unsigned* counts, int n) {
  SIMT_SHARED(unsigned, own, [64]);
  for (int i = threadIdx.x; i < 64; i += blockDim.x)
    own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&own[x[i] & 63], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 64; i += blockDim.x)
    atomicAdd(&counts[i], own[i]);
}

// Votes: the ballot of x > 0 per warp, and whether any and whether all lanes are positive; the count per block.
__global__ void votes(const int* x, unsigned* ballots, int* any, int* all, int* count) {
  const int positive = x[threadIdx.x] > 0;
  const unsigned ballot = __ballot_sync(0xffffffffu, positive);
  const int some = __any_sync(0xffffffffu, positive);
  const int every = __all_sync(0xffffffffu, positive);
  if (threadIdx.x % 32 == 0) {
    ballots[threadIdx.x / 32] = ballot;
    any[threadIdx.x / 32] = some;
    all[threadIdx.x / 32] = every;
  }
  const int total = __syncthreads_count(positive);
  if (threadIdx.x == 0) *count = total;
}
