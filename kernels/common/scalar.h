// Conversion of an element to another element type.
#pragma once

#include <brigade/core/host_device.h>

#include <cstdint>
#include <type_traits>

namespace brigade::kernels {

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
