// Elements of any dtype: dispatch on their size, and conversion.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/core/host_device.h>

#include <cstdint>
#include <type_traits>

namespace brigade::kernels {

// --- Dispatch on element size, for kernels that move elements without computing.

// Calls body with an unsigned integer type as wide as an element of the dtype.
template <class Body>
decltype(auto) visit_bits(DType dtype, Body&& body) {
  switch (itemsize(dtype)) {
    case 1: return body(uint8_t{});
    case 2: return body(uint16_t{});
    case 4: return body(uint32_t{});
    default: return body(uint64_t{});
  }
}

// The conversion of copy(). A negative floating number wraps around to a uint8; a direct conversion would be undefined
// behavior.
template <class To, class From>
BRIGADE_HOST_DEVICE To as_element(From x) {
  if constexpr (std::is_same_v<To, uint8_t> && std::is_floating_point_v<From>) {
    return static_cast<To>(static_cast<int64_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace brigade::kernels
