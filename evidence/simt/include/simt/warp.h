// Warp operations: shuffles of any type of up to 8 bytes, and votes. The lanes of the mask meet at each operation.
#pragma once

#include <simt/detail/current.h>

#include <cstring>
#include <type_traits>

namespace simt::detail {

template <class T>
T shuffle(unsigned mask, T value, unsigned source, const Location& where) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const void*>(&value), sizeof(T));
  bits = warp(WarpOperation::Shuffle, mask, bits, source, where);
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

// A warp is divided into segments of `width` lanes; a source outside the caller's segment gives the caller's own value.
inline void check_width(int width, const Location& where) {
  if (width < 1 || width > 32 || (width & (width - 1)) != 0)
    fail("a shuffle of width " + std::to_string(width) + "; expected a power of 2 up to 32", where);
}
inline unsigned segment_begin(int width) { return lane_index() & ~(static_cast<unsigned>(width) - 1); }

}  // namespace simt::detail

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              simt::detail::Location where = simt::detail::Location::current()) {
  simt::detail::check_width(width, where);
  const unsigned lane = simt::detail::segment_begin(width) | (static_cast<unsigned>(source) & (width - 1u));
  return simt::detail::shuffle(mask, value, lane, where);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 simt::detail::Location where = simt::detail::Location::current()) {
  simt::detail::check_width(width, where);
  const unsigned lane = simt::detail::lane_index();
  const bool inside = lane - simt::detail::segment_begin(width) >= delta;
  return simt::detail::shuffle(mask, value, inside ? lane - delta : lane, where);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   simt::detail::Location where = simt::detail::Location::current()) {
  simt::detail::check_width(width, where);
  const unsigned lane = simt::detail::lane_index();
  const bool inside = delta < simt::detail::segment_begin(width) + static_cast<unsigned>(width) - lane;
  return simt::detail::shuffle(mask, value, inside ? lane + delta : lane, where);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,
                  simt::detail::Location where = simt::detail::Location::current()) {
  simt::detail::check_width(width, where);
  const unsigned lane = simt::detail::lane_index();
  const unsigned source = lane ^ (static_cast<unsigned>(lane_mask) & 31u);
  // Segments before the caller's may be read, those after it may not.
  const bool inside = source < simt::detail::segment_begin(width) + static_cast<unsigned>(width);
  return simt::detail::shuffle(mask, value, inside ? source : lane, where);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              simt::detail::Location where = simt::detail::Location::current()) {
  return static_cast<unsigned>(simt::detail::warp(simt::detail::WarpOperation::Ballot, mask, predicate != 0, 0, where));
}
inline int __any_sync(unsigned mask, int predicate, simt::detail::Location where = simt::detail::Location::current()) {
  return __ballot_sync(mask, predicate, where) != 0;
}
inline int __all_sync(unsigned mask, int predicate, simt::detail::Location where = simt::detail::Location::current()) {
  return __ballot_sync(mask, predicate == 0, where) == 0;
}

inline void __syncwarp(unsigned mask = 0xffffffffu, simt::detail::Location where = simt::detail::Location::current()) {
  simt::detail::warp(simt::detail::WarpOperation::Sync, mask, 0, 0, where);
}
