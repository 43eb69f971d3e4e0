// Numbers in the type of elements.
#pragma once

#include <brigade/core/host_device.h>

#include <cmath>
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

// A number that a caller gave. Integers go through int64 and wrap around, so that -1 and 300 mean
// for uint8 what they mean in PyTorch; the fraction is cut off.
template <class C>
C scalar_as(double number) {
  if constexpr (std::is_same_v<C, bool>) {
    return number != 0;
  } else if constexpr (std::is_integral_v<C>) {
    return std::abs(number) < 0x1p63 ? static_cast<C>(static_cast<int64_t>(number)) : C(0);
  } else {
    return static_cast<C>(number);
  }
}

}  // namespace brigade::kernels
