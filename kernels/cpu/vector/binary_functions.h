// Functions of two float32 numbers over dense arrays, compiled for each instruction set. `out` may
// be one of the inputs.
#pragma once

#include <brigade/kernels/elementwise.h>

#include <cstdint>

namespace brigade::kernels::cpu {

void binary_function_floats(BinaryFunction f, const float* x, const float* y, float* out, int64_t n);

}  // namespace brigade::kernels::cpu
