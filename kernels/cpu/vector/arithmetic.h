// Arithmetic of float32 numbers over dense arrays, compiled for each instruction set. `out` may be one of the inputs.
#pragma once

#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/ternary.h>

#include <cstdint>

namespace brigade::kernels::cpu {

void binary_floats(BinaryOp op, const float* x, const float* y, float* out, int64_t n);
// x op number, or number op x when `reversed`
void binary_number_floats(BinaryOp op, const float* x, float number, bool reversed, float* out, int64_t n);
// out = x + factor * y
void add_scaled_floats(const float* x, const float* y, float factor, float* out, int64_t n);
// x held between the borders; a NaN stays one, and a border that is NaN is taken.
void clamp_floats(const float* x, float lower, float upper, float* out, int64_t n);
void ternary_floats(TernaryOp op, const float* a, const float* b, const float* c, float number, float* out, int64_t n);
// a + weight (b - a)
void lerp_floats(const float* a, const float* b, float weight, float* out, int64_t n);

}  // namespace brigade::kernels::cpu
