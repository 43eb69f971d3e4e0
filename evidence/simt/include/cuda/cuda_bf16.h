// The part of bfloat16 that the emulation needs.
#pragma once

#include <simt/detail/narrow_float.h>

using __nv_bfloat16 = simt::detail::NarrowFloat<7>;
using __nv_bfloat162 = simt::detail::NarrowPair<__nv_bfloat16>;

inline __nv_bfloat16 __float2bfloat16(float x) { return x; }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
inline __nv_bfloat16 __double2bfloat16(double x) { return x; }
inline float __bfloat162float(__nv_bfloat16 x) { return x; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits(); }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16::from_bits(bits); }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
