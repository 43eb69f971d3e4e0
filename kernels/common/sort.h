// Device-independent parts of sorting: slices along a dimension, and integer keys that order like the elements.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/sort.h>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace brigade::kernels {

struct SortPlan {
  Tensor x;  // dense [outer, length, inner]
  int64_t outer = 1, length = 1, inner = 1;
  int64_t kept = 1;  // of a slice
  Sorted result;     // [outer, kept, inner], not filled
};
SortPlan prepare_sort(const Tensor& x, int dim);
// Throws ValueError.
SortPlan prepare_topk(const Tensor& x, int64_t k, int dim);

// 64 bits for 64-bit types, 32 bits for the others.
template <class T>
using sort_key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// a comes before b in the requested order exactly when key(a) < key(b). Floating numbers use their bits, inverted for
// negative numbers; a NaN has the largest key.
template <class T>
BRIGADE_HOST_DEVICE sort_key<T> sort_key_of(T element, bool descending) {
  using Key = sort_key<T>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  Key key;
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, uint8_t>) {
    key = static_cast<Key>(element);
  } else if constexpr (std::is_integral_v<T>) {
    key = static_cast<Key>(element) ^ kSign;
  } else {
    using C = compute_type<T>;
    const C value = static_cast<C>(element);
    const Key bits = std::bit_cast<Key>(value == C(0) ? C(0) : value);
    key = value != value ? static_cast<Key>(~Key{0}) : bits & kSign ? static_cast<Key>(~bits) : bits | kSign;
  }
  return descending ? static_cast<Key>(~key) : key;
}

}  // namespace brigade::kernels
