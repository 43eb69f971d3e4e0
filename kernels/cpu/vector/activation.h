// Activations and their gradients over dense arrays, computed in float32, compiled for each
// instruction set.
#pragma once

#include <brigade/kernels/cpu/vector/float_arrays.h>

namespace brigade::kernels::cpu {

// Of x.
void relu_floats(const FloatArrays& arrays);
void gelu_floats(const FloatArrays& arrays);
void gelu_tanh_floats(const FloatArrays& arrays);
void tanh_floats(const FloatArrays& arrays);
void sigmoid_floats(const FloatArrays& arrays);
void silu_floats(const FloatArrays& arrays);
void leaky_relu_floats(float slope, const FloatArrays& arrays);

// Of the gradient, and of the result y for relu, tanh and sigmoid, of x for the others.
void relu_gradient_floats(const FloatArrays& arrays);
void gelu_gradient_floats(const FloatArrays& arrays);
void gelu_tanh_gradient_floats(const FloatArrays& arrays);
void tanh_gradient_floats(const FloatArrays& arrays);
void sigmoid_gradient_floats(const FloatArrays& arrays);
void silu_gradient_floats(const FloatArrays& arrays);
void leaky_relu_gradient_floats(float slope, const FloatArrays& arrays);

}  // namespace brigade::kernels::cpu
