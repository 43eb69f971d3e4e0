// A number that a caller gave, in the type of elements.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace brigade::kernels {

// Integers go through int64 and wrap around, so that -1 and 300 mean for uint8 what they mean in PyTorch; the fraction
// is cut off.
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
