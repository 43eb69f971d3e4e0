// Vector accesses to global or shared memory of 4, 8, or 16 bytes. The device requires an address that is a multiple of
// the size and faults without a source line; here the thread throws.
#pragma once

#ifndef __CUDACC__
#include <simt/detail/current.h>

#include <cstdint>
#endif

namespace simt {

#ifdef __CUDACC__

template <class V>
__device__ __forceinline__ V load_vector(const void* address) {
  return *static_cast<const V*>(address);
}

template <class V>
__device__ __forceinline__ void store_vector(void* address, const V& value) {
  *static_cast<V*>(address) = value;
}

#else

// Throws simt::Error if the address is not a multiple of `bytes`.
inline void check_aligned(const void* address, size_t bytes, detail::Location where = detail::Location::current()) {
  const uintptr_t number = reinterpret_cast<uintptr_t>(address);
  if (number % bytes != 0)
    detail::fail("misaligned access: " + std::to_string(bytes) + " bytes at an address that is " +
                     std::to_string(number % bytes) + " past a multiple of " + std::to_string(bytes),
                 where);
}

template <class V>
V load_vector(const void* address, detail::Location where = detail::Location::current()) {
  check_aligned(address, sizeof(V), where);
  return *static_cast<const V*>(address);
}

template <class V>
void store_vector(void* address, const V& value, detail::Location where = detail::Location::current()) {
  check_aligned(address, sizeof(V), where);
  *static_cast<V*>(address) = value;
}

#endif

}  // namespace simt
