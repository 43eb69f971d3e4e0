// Gradients times the inverse of a loss's scale, and whether all of them were finite: one pass,
// compiled for each instruction set.
#pragma once

#include <brigade/core/dtype.h>

#include <cstdint>

namespace brigade::kernels::cpu {

// Whether every one of n elements of a floating dtype is finite.
bool all_finite(DType dtype, const void* x, int64_t n);

// x *= factor; whether every element was finite before.
bool unscale_floats(float* x, int64_t n, float factor);

}  // namespace brigade::kernels::cpu
