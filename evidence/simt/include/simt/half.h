// Half-type functions that exist only on the device: unary functions are computed in double and rounded, multiply-add
// rounds once. (Types, conversions, arithmetic, and comparisons: cuda_fp16.h and cuda_bf16.h.)
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

namespace simt::detail {

// x * y + z with a single rounding. A double holds the product exactly, but not always the sum. In that case, take the
// adjacent double with an odd last bit (round to odd): it rounds as the exact sum does, because no midpoint between two
// halves is odd.
template <class T>
T multiply_add(T x, T y, T z) {
  const double product = static_cast<double>(static_cast<float>(x)) * static_cast<double>(static_cast<float>(y));
  const double addend = static_cast<float>(z);
  double sum = product + addend;
  if (!std::isfinite(sum)) return sum;
  // The rounding error of the sum (Knuth's two-sum).
  const double of_addend = sum - product;
  const double lost = (product - (sum - of_addend)) + (addend - of_addend);
  const bool odd = (std::bit_cast<uint64_t>(sum) & 1) != 0;
  if (lost != 0 && !odd) sum = std::nextafter(sum, lost > 0 ? HUGE_VAL : -HUGE_VAL);
  return sum;
}

template <class Pair, class Function>
Pair both(Pair x, Function function) {
  x.x = function(x.x);
  x.y = function(x.y);
  return x;
}

}  // namespace simt::detail

inline __half __hfma(__half x, __half y, __half z) { return simt::detail::multiply_add(x, y, z); }
inline __half2 __hfma2(__half2 x, __half2 y, __half2 z) { return {__hfma(x.x, y.x, z.x), __hfma(x.y, y.y, z.y)}; }
inline __nv_bfloat16 __hfma(__nv_bfloat16 x, __nv_bfloat16 y, __nv_bfloat16 z) {
  return simt::detail::multiply_add(x, y, z);
}
inline __nv_bfloat162 __hfma2(__nv_bfloat162 x, __nv_bfloat162 y, __nv_bfloat162 z) {
  return {__hfma(x.x, y.x, z.x), __hfma(x.y, y.y, z.y)};
}

// h<name> for one number and h2<name> for a pair, for both types.
#define SIMT_HALF_FUNCTION(name, T, Pair, expression)                 \
  inline T h##name(T value) {                                         \
    const double x = static_cast<float>(value);                       \
    return static_cast<T>(expression);                                \
  }                                                                   \
  inline Pair h2##name(Pair value) {                                  \
    return simt::detail::both(value, [](T x) { return h##name(x); }); \
  }
#define SIMT_HALF_FUNCTIONS(name, expression)           \
  SIMT_HALF_FUNCTION(name, __half, __half2, expression) \
  SIMT_HALF_FUNCTION(name, __nv_bfloat16, __nv_bfloat162, expression)

SIMT_HALF_FUNCTIONS(sqrt, std::sqrt(x))
SIMT_HALF_FUNCTIONS(rsqrt, 1.0 / std::sqrt(x))
SIMT_HALF_FUNCTIONS(rcp, 1.0 / x)
SIMT_HALF_FUNCTIONS(exp, std::exp(x))
SIMT_HALF_FUNCTIONS(exp2, std::exp2(x))
SIMT_HALF_FUNCTIONS(exp10, std::pow(10.0, x))
SIMT_HALF_FUNCTIONS(log, std::log(x))
SIMT_HALF_FUNCTIONS(log2, std::log2(x))
SIMT_HALF_FUNCTIONS(log10, std::log10(x))
SIMT_HALF_FUNCTIONS(sin, std::sin(x))
SIMT_HALF_FUNCTIONS(cos, std::cos(x))
SIMT_HALF_FUNCTIONS(tanh, std::tanh(x))
SIMT_HALF_FUNCTIONS(ceil, std::ceil(x))
SIMT_HALF_FUNCTIONS(floor, std::floor(x))
SIMT_HALF_FUNCTIONS(rint, std::nearbyint(x))
SIMT_HALF_FUNCTIONS(trunc, std::trunc(x))

#undef SIMT_HALF_FUNCTIONS
#undef SIMT_HALF_FUNCTION
