// The device language for a host compiler: a kernel that includes this header compiles under nvcc, where the header is
// nearly empty, and under g++ or clang++, where <simt/launch.h> runs it on the CPU.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#ifndef __CUDACC__

#include <simt/atomics.h>
#include <simt/barrier.h>
#include <simt/half.h>
#include <simt/math.h>
#include <simt/warp.h>

#define __launch_bounds__(...)
#define threadIdx (simt::detail::thread_index())
#define blockIdx (simt::detail::block_index())
#define blockDim (simt::detail::block_size())
#define gridDim (simt::detail::grid_size())
#define warpSize 32

// Loads with a cache hint.
template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
void __stcs(T* address, T value) {
  *address = value;
}

inline void __nanosleep(unsigned) {}

[[noreturn]] inline void __trap(simt::detail::Location where = simt::detail::Location::current()) {
  simt::detail::fail("__trap()", where);
}

#endif

#include <simt/shared.h>
#include <simt/vector.h>
