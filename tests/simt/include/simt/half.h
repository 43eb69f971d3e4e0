// Half precision: cuda_fp16.h and cuda_bf16.h give types, conversions, arithmetic and comparisons to the host, and
// these to the device alone. Each is computed in double and rounded once.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

namespace simt::detail {

inline double wide(__half x) { return static_cast<double>(__half2float(x)); }
inline double wide(__nv_bfloat16 x) { return static_cast<double>(__bfloat162float(x)); }

template <class T>
T narrow(double x);
template <>
inline __half narrow<__half>(double x) {
  return __double2half(x);
}
template <>
inline __nv_bfloat16 narrow<__nv_bfloat16>(double x) {
  return __double2bfloat16(x);
}

template <class Pair, class Function>
Pair both(Pair x, Function function) {
  x.x = function(x.x);
  x.y = function(x.y);
  return x;
}

}  // namespace simt::detail

inline __half __hfma(__half x, __half y, __half z) {
  return simt::detail::narrow<__half>(std::fma(simt::detail::wide(x), simt::detail::wide(y), simt::detail::wide(z)));
}
inline __half2 __hfma2(__half2 x, __half2 y, __half2 z) { return {__hfma(x.x, y.x, z.x), __hfma(x.y, y.y, z.y)}; }
inline __nv_bfloat16 __hfma(__nv_bfloat16 x, __nv_bfloat16 y, __nv_bfloat16 z) {
  return simt::detail::narrow<__nv_bfloat16>(
      std::fma(simt::detail::wide(x), simt::detail::wide(y), simt::detail::wide(z)));
}
inline __nv_bfloat162 __hfma2(__nv_bfloat162 x, __nv_bfloat162 y, __nv_bfloat162 z) {
  return {__hfma(x.x, y.x, z.x), __hfma(x.y, y.y, z.y)};
}

// h<name> of one number and h2<name> of a pair, for both types.
#define SIMT_HALF_FUNCTION(name, T, Pair, expression)                 \
  inline T h##name(T value) {                                         \
    const double x = simt::detail::wide(value);                       \
    return simt::detail::narrow<T>(expression);                       \
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
