// The elementary functions of the standard library (or of CUDA).
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/elementary.h>

#include <cmath>
#include <utility>

namespace brigade::kernels {

template <Function f>
struct Elementary {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    if constexpr (f == Function::Rsqrt) return C(1) / std::sqrt(x);
    if constexpr (f == Function::Sin) return std::sin(x);
    if constexpr (f == Function::Cos) return std::cos(x);
    if constexpr (f == Function::Tan) return std::tan(x);
    if constexpr (f == Function::Asin) return std::asin(x);
    if constexpr (f == Function::Acos) return std::acos(x);
    if constexpr (f == Function::Atan) return std::atan(x);
    if constexpr (f == Function::Sinh) return std::sinh(x);
    if constexpr (f == Function::Cosh) return std::cosh(x);
    if constexpr (f == Function::Log1p) return std::log1p(x);
    if constexpr (f == Function::Expm1) return std::expm1(x);
    if constexpr (f == Function::Log2) return std::log2(x);
    if constexpr (f == Function::Log10) return std::log10(x);
    if constexpr (f == Function::Exp2) return std::exp2(x);
    if constexpr (f == Function::Erf) return std::erf(x);
    if constexpr (f == Function::Erfc) return std::erfc(x);
    if constexpr (f == Function::Floor) return std::floor(x);
    if constexpr (f == Function::Ceil) return std::ceil(x);
    if constexpr (f == Function::Round) return std::rint(x);
    if constexpr (f == Function::Trunc) return std::trunc(x);
  }
};

// Calls body with the functor of the function, so that a loop is compiled once per function and
// dtype.
template <class Body>
void with_function(Function f, Body&& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (void)((static_cast<int>(f) == i && (body(Elementary<static_cast<Function>(i)>{}), true)) || ...);
  }
  (std::make_integer_sequence<int, kFunctions>{});
}

// Selects the function at run time.
template <class C, int... i>
BRIGADE_HOST_DEVICE C any_function(Function f, C x, std::integer_sequence<int, i...>) {
  C y = x;
  (void)((static_cast<int>(f) == i && (y = Elementary<static_cast<Function>(i)>{}(x), true)) || ...);
  return y;
}

}  // namespace brigade::kernels
