// Conversions between the 16-bit floating types and float32 over dense arrays, compiled for each
// instruction set; to the nearest, ties to even, NaN to NaN (core/half.h, bit for bit). The arrays
// do not overlap.
#pragma once

#include <brigade/core/half.h>

#include <cstdint>

namespace brigade::kernels::cpu {

void widen(const float16* from, float* to, int64_t n);
void widen(const bfloat16* from, float* to, int64_t n);
void narrow(const float* from, float16* to, int64_t n);
void narrow(const float* from, bfloat16* to, int64_t n);

}  // namespace brigade::kernels::cpu
