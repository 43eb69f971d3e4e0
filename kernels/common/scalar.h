// Elements in the type of other elements.
#pragma once

#include <brigade/core/host_device.h>

#include <cstdint>
#include <type_traits>

namespace brigade::kernels {

// What copy() makes of an element. A negative number becomes a uint8 by wrapping around, which the
// language leaves to the processor where the conversion is direct.
template <class To, class From>
BRIGADE_HOST_DEVICE To as_element(From x) {
  if constexpr (std::is_same_v<To, uint8_t> && std::is_floating_point_v<From>) {
    return static_cast<To>(static_cast<int64_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace brigade::kernels
