// Arithmetic over dense arrays, computed in float32, compiled for each instruction set.
#pragma once

#include <brigade/kernels/cpu/vector/float_arrays.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::kernels::cpu {

void binary_floats(BinaryOp op, const FloatArrays& arrays);
// x op number, or number op x when `reversed`
void binary_number_floats(BinaryOp op, float number, bool reversed, const FloatArrays& arrays);
// x + factor * y
void add_scaled_floats(float factor, const FloatArrays& arrays);
// x clamped to the bounds; a NaN x is kept, and a NaN bound is the result.
void clamp_floats(float lower, float upper, const FloatArrays& arrays);
void ternary_floats(TernaryOp op, float number, const FloatArrays& arrays);
// a + weight (b - a)
void lerp_floats(float weight, const FloatArrays& arrays);

}  // namespace brigade::kernels::cpu
