// Functors of binary_function.h for CPU and CUDA loops, and the argument checks of both.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/binary_function.h>
#include <brigade/kernels/common/elementwise.h>

#include <cmath>
#include <type_traits>

namespace brigade::kernels {

// Throw DeviceError, DTypeError, ShapeError.
Operands prepare_binary_function(const Tensor& a, const Tensor& b, BinaryFunction f);
Operands prepare_binary_function_scalar(const Tensor& a, Scalar number, BinaryFunction f);

// Exponentiation by squaring.
template <class C>
BRIGADE_HOST_DEVICE C integer_power(C x, C y) {
  if constexpr (std::is_signed_v<C>) {
    if (y < 0) return x == 1 ? C(1) : x == C(-1) ? (y % 2 == 0 ? C(1) : C(-1)) : C(0);
  }
  // Unsigned arithmetic, where overflow wraps around.
  uint64_t result = 1;
  uint64_t square = static_cast<uint64_t>(x);
  for (uint64_t rest = static_cast<uint64_t>(y); rest; rest >>= 1) {
    if (rest & 1) result *= square;
    square *= square;
  }
  return static_cast<C>(result);
}

template <BinaryFunction f>
struct BinaryFunctor {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x, C y) const {
    if constexpr (std::is_integral_v<C>) {
      if constexpr (f == BinaryFunction::Pow) return integer_power(x, y);
      if constexpr (f == BinaryFunction::Atan2) return C(0);  // computed in float32
      if (y == 0) return C(0);
      if constexpr (std::is_signed_v<C>) {
        if (y == -1) return C(0);  // the quotient of the lowest number would overflow
      }
      const C rest = static_cast<C>(x % y);
      if constexpr (f == BinaryFunction::Remainder && std::is_signed_v<C>) {
        return rest != 0 && (rest < 0) != (y < 0) ? static_cast<C>(rest + y) : rest;
      }
      return rest;
    } else {
      if constexpr (f == BinaryFunction::Pow) return std::pow(x, y);
      if constexpr (f == BinaryFunction::Atan2) return std::atan2(x, y);
      const C rest = std::fmod(x, y);
      if constexpr (f == BinaryFunction::Remainder) return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
      return rest;
    }
  }
};

// Selects the function at run time.
struct AnyBinaryFunction {
  BinaryFunction f;
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x, C y) const {
    switch (f) {
      case BinaryFunction::Pow: return BinaryFunctor<BinaryFunction::Pow>{}(x, y);
      case BinaryFunction::Atan2: return BinaryFunctor<BinaryFunction::Atan2>{}(x, y);
      case BinaryFunction::Remainder: return BinaryFunctor<BinaryFunction::Remainder>{}(x, y);
      case BinaryFunction::Fmod: break;
    }
    return BinaryFunctor<BinaryFunction::Fmod>{}(x, y);
  }
};

}  // namespace brigade::kernels
