// Kernels with exactly one bug each.
#pragma once

#include <simt/device.h>

// The two halves of a warp wait at different barriers.
__global__ void divergent_barrier(float* x) {
  if (threadIdx.x < 16) {
    x[threadIdx.x] = 1;
    __syncthreads();
  } else {
    x[threadIdx.x] = 2;
    __syncthreads();
  }
}

// Threads without work return before the barrier.
__global__ void exit_before_barrier(float* x, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  x[i] = 1;
  __syncthreads();
}

// Half of the warp shuffles with the full mask; the others exit.
__global__ void shuffle_with_exited_lanes(float* x) {
  if (threadIdx.x < 16) x[threadIdx.x] = __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 1);
}

__global__ void shuffle_without_the_caller(float* x) {
  x[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, x[threadIdx.x], 1);
}

// The lower half's lanes read lanes of the upper half, which are not in the mask.
__global__ void shuffle_outside_of_the_mask(float* x) {
  if (threadIdx.x < 16) x[threadIdx.x] = __shfl_down_sync(0x0000ffffu, x[threadIdx.x], 8);
}

__global__ void different_masks(float* x) {
  const unsigned mask = threadIdx.x < 8 ? 0x0000ffffu : 0xffffffffu;
  x[threadIdx.x] = __shfl_xor_sync(mask, x[threadIdx.x], 1);
}

__global__ void shuffle_of_odd_width(float* x) {
  x[threadIdx.x] = __shfl_down_sync(0xffffffffu, x[threadIdx.x], 1, 12);
}

// Half of the warp waits for the block, the other half for the warp.
__global__ void waits_in_circle(float* x) {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    __syncwarp();
  }
  x[threadIdx.x] = 1;
}

__global__ void misaligned_load(const float* x, float* y) {
  const float4 four = simt::load_vector<float4>(x + threadIdx.x);
  y[threadIdx.x] = four.x + four.y + four.z + four.w;
}

__global__ void misaligned_store(float* x) { simt::store_vector(x + 1, float4{1, 2, 3, 4}); }

__global__ void traps(int* x) {
  if (*x != 0) __trap();
}

__global__ void shared_memory_of_64_kib(float* x) {
  SIMT_SHARED(float, large, [16384]);
  large[threadIdx.x] = x[threadIdx.x];
}

__global__ void dynamic_row(float* x) {
  SIMT_DYNAMIC_SHARED(float, row);
  row[threadIdx.x] = x[threadIdx.x];
}

__global__ void reads_unwritten_shared(float* x) {
  SIMT_SHARED(float, fixed, [32]);
  SIMT_DYNAMIC_SHARED(float, dynamic);
  x[threadIdx.x] = threadIdx.x < 16 ? fixed[threadIdx.x] : dynamic[threadIdx.x];
}

// Each thread reads the value written by its neighbor.
template <bool kBarrier>
__global__ void neighbours(float* x) {
  SIMT_SHARED(float, row, [256]);
  const int i = threadIdx.x;
  row[i] = x[i];
  if (kBarrier) __syncthreads();
  x[i] = row[(i + 255) % 256];
}

// The second barrier keeps the next round from overwriting values that other threads still read.
template <bool kBarrier>
__global__ void rounds(float* x) {
  SIMT_SHARED(float, row, [64]);
  const int i = threadIdx.x;
  float sum = 0;
  for (int round = 0; round < 4; ++round) {
    row[i] = x[i] * static_cast<float>(round + 1);
    __syncthreads();
    sum += row[63 - i];
    if (kBarrier) __syncthreads();
  }
  x[i] = sum;
}

// A warp that has finished its sum overwrites values that another warp has yet to add. All warps reach their first
// shuffle before any continues, unless one warp runs ahead.
template <bool kBarrier>
__global__ void warp_sums(float* x) {
  SIMT_SHARED(float, row, [64]);
  const int i = threadIdx.x;
  row[i] = x[i];
  __syncthreads();
  float sum = row[63 - i];
  for (int offset = 16; offset > 0; offset /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (kBarrier) __syncthreads();
  row[i] = sum;
  __syncthreads();
  x[i] = row[63 - i];
}

// Lanes of a warp do not run in lock-step: exchanging data through shared memory requires a __syncwarp.
template <bool kBarrier>
__global__ void lanes(float* x) {
  SIMT_SHARED(float, row, [32]);
  const int i = threadIdx.x;
  row[i] = x[i];
  if (kBarrier) __syncwarp();
  x[i] = row[31 - i];
}

__global__ void one_past_global(float* x, int n) {
  const int i = threadIdx.x;
  if (i <= n) x[i] = 1;
}

__global__ void one_past_shared(float* x) {
  SIMT_SHARED(float, row, [31]);
  row[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = row[30 - threadIdx.x % 31];
}

__global__ void one_past_dynamic(float* x, int n) {
  SIMT_DYNAMIC_SHARED(float, row);
  if (static_cast<int>(threadIdx.x) <= n) row[threadIdx.x] = x[0];
}

__device__ __attribute__((noinline)) inline int deep(volatile int* x, int depth) {
  volatile int frame[256];
  frame[depth % 256] = x[0];
  return depth == 0 ? frame[0] : deep(x, depth - 1) + frame[depth % 256];
}

// Thread 0 uses about 90 KiB of stack after all threads have theirs; ends the process if that fits.
__global__ void stack_overflow(int* x) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  x[0] = deep(x, 80);
  std::_Exit(0);
}
