// Functions of float32 numbers over dense arrays, compiled for each instruction set: y[i] =
// f(x[i]). y may be x.
#pragma once

#include <brigade/kernels/cpu/vector/float_arrays.h>
#include <brigade/kernels/elementwise.h>

#include <cstdint>

namespace brigade::kernels::cpu {

void function_floats(Function f, const float* x, float* y, int64_t n);
// The same for an input of float32 or a half type.
void unary_floats(UnaryOp op, const FloatArrays& arrays);

}  // namespace brigade::kernels::cpu
