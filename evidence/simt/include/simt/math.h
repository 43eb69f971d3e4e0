// Math and bit functions that exist on the device but not on the host. The fast-math functions are exact here: compare
// with a tolerance.
#pragma once

#include <math.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return std::pow(10.0f, x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline float __tanhf(float x) { return std::tanh(x); }
inline float __saturatef(float x) { return x >= 1.0f ? 1.0f : (x > 0.0f ? x : 0.0f); }
inline float __fdividef(float x, float y) { return x / y; }

namespace simt::detail {
// Forces a rounding: the host compiler must not fuse the operation with its context.
template <class T>
T rounded(T value) {
  volatile T kept = value;
  return kept;
}
}  // namespace simt::detail

inline float __fadd_rn(float x, float y) { return simt::detail::rounded(x + y); }
inline float __fsub_rn(float x, float y) { return simt::detail::rounded(x - y); }
inline float __fmul_rn(float x, float y) { return simt::detail::rounded(x * y); }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline double __dadd_rn(double x, double y) { return simt::detail::rounded(x + y); }
inline double __dmul_rn(double x, double y) { return simt::detail::rounded(x * y); }
inline double __fma_rn(double x, double y, double z) { return std::fma(x, y, z); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline int __ffsll(long long x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1; }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit)
    reversed |= (x >> bit & 1u) << (31 - bit);
  return reversed;
}
inline unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>(uint64_t{x} * y >> 32); }
inline int __mulhi(int x, int y) { return static_cast<int>(int64_t{x} * y >> 32); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}

// Maximum and minimum; given a NaN and a number, they return the number.
template <class T>
T min(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) return std::fmin(x, y);
  return y < x ? y : x;
}
template <class T>
T max(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) return std::fmax(x, y);
  return x < y ? y : x;
}
