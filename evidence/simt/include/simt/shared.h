// Shared memory, for nvcc and for the emulation.
//
//   SIMT_SHARED(float, tile, [16][17]);      as  __shared__ float tile[16][17];
//   SIMT_SHARED(int, count, );               as  __shared__ int count;
//   SIMT_DYNAMIC_SHARED(float, row);         as  extern __shared__ float row[];  with the size given at launch
//
// In the emulation, each block gets fresh heap memory filled with 0xff (NaN as a float): reading memory before it is
// written is wrong in every order, and the address sanitizer knows where an array ends.
#pragma once

#ifdef __CUDACC__

#define SIMT_SHARED(T, name, dims) __shared__ T name dims
// A single name for the bytes in all kernels: the compiler forbids one name with two types.
#define SIMT_DYNAMIC_SHARED(T, name)                                          \
  extern __shared__ __align__(16) unsigned char simt_dynamic_shared_memory[]; \
  T* const name = reinterpret_cast<T*>(simt_dynamic_shared_memory)

#else

#include <simt/detail/current.h>

#define SIMT_SHARED(T, name, dims)                                            \
  using simt_type_of_##name = T dims;                                         \
  static char simt_site_of_##name;                                            \
  auto& name = *static_cast<simt_type_of_##name*>(simt::detail::shared_array( \
      &simt_site_of_##name, sizeof(simt_type_of_##name), #name, simt::detail::Location::current()))
#define SIMT_DYNAMIC_SHARED(T, name) T* const name = static_cast<T*>(simt::detail::dynamic_shared())

// A plain __shared__ would be a variable on the thread's own stack here.
#undef __shared__
#define __shared__ write_SIMT_SHARED_instead_of_shared

#endif
