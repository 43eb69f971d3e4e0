// The part of float16 that the emulation needs.
#pragma once

#include <simt/detail/narrow_float.h>

using __half = simt::detail::NarrowFloat<10>;
using __half2 = simt::detail::NarrowPair<__half>;

inline __half __float2half(float x) { return x; }
inline __half __float2half_rn(float x) { return x; }
inline __half __double2half(double x) { return x; }
inline float __half2float(__half x) { return x; }
inline unsigned short __half_as_ushort(__half x) { return x.bits(); }
inline __half __ushort_as_half(unsigned short bits) { return __half::from_bits(bits); }
inline __half2 __half2half2(__half x) { return {x, x}; }
