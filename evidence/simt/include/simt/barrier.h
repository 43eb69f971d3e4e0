// Barriers and fences of a block.
#pragma once

#include <simt/detail/current.h>

inline void __syncthreads(simt::detail::Location where = simt::detail::Location::current()) {
  simt::detail::barrier(false, where);
}
inline int __syncthreads_count(int predicate, simt::detail::Location where = simt::detail::Location::current()) {
  return static_cast<int>(simt::detail::barrier(predicate != 0, where));
}
inline int __syncthreads_or(int predicate, simt::detail::Location where = simt::detail::Location::current()) {
  return simt::detail::barrier(predicate != 0, where) != 0;
}
inline int __syncthreads_and(int predicate, simt::detail::Location where = simt::detail::Location::current()) {
  return simt::detail::barrier(predicate == 0, where) == 0;
}

inline void __threadfence() { simt::detail::fence(); }
inline void __threadfence_block() { simt::detail::fence(); }
inline void __threadfence_system() { simt::detail::fence(); }
