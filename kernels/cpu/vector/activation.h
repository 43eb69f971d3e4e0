// Activations of float32 numbers and their gradients over dense arrays, compiled for each instruction set. `out` may be
// one of the inputs.
#pragma once

#include <cstdint>

namespace brigade::kernels::cpu {

void relu_floats(const float* x, float* out, int64_t n);
void leaky_relu_floats(const float* x, float slope, float* out, int64_t n);
void gelu_floats(const float* x, float* out, int64_t n);
void gelu_tanh_floats(const float* x, float* out, int64_t n);
void tanh_floats(const float* x, float* out, int64_t n);
void sigmoid_floats(const float* x, float* out, int64_t n);
void silu_floats(const float* x, float* out, int64_t n);

// By the result y of relu, tanh and sigmoid, by x of the others.
void relu_gradient_floats(const float* grad, const float* y, float* out, int64_t n);
void leaky_relu_gradient_floats(const float* grad, const float* x, float slope, float* out, int64_t n);
void gelu_gradient_floats(const float* grad, const float* x, float* out, int64_t n);
void gelu_tanh_gradient_floats(const float* grad, const float* x, float* out, int64_t n);
void tanh_gradient_floats(const float* grad, const float* y, float* out, int64_t n);
void sigmoid_gradient_floats(const float* grad, const float* y, float* out, int64_t n);
void silu_gradient_floats(const float* grad, const float* x, float* out, int64_t n);

}  // namespace brigade::kernels::cpu
