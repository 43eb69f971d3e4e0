// Multiplies gradients by the inverse loss scale and checks that all are finite, in one pass, compiled for each
// instruction set.
#pragma once

#include <brigade/core/dtype.h>

#include <cstdint>

namespace brigade::kernels::cpu {

// Whether every one of n elements of a floating dtype is finite.
bool all_finite(DType dtype, const void* x, int64_t n);

// x *= factor. Returns whether every element was finite on entry.
bool unscale_floats(float* x, int64_t n, float factor);

}  // namespace brigade::kernels::cpu
