// Gradients times the inverse of a loss's scale, and whether all of them were finite: one pass,
// compiled for each instruction set.
#pragma once

#include <cstdint>

namespace brigade::kernels::cpu {

// x *= factor; whether every element was finite before. A factor of 1 only looks.
bool unscale_floats(float* x, int64_t n, float factor);

}  // namespace brigade::kernels::cpu
