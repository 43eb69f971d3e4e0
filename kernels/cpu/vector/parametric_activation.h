// The activations with parameters over dense arrays of float32, compiled for each
// instruction set. `out` may be one of the inputs.
#pragma once

#include <brigade/kernels/activation.h>

#include <cstdint>

namespace brigade::kernels::cpu {

void activation_floats(Activation kind, const ActivationParams& params, const float* x, float* out, int64_t n);
void activation_gradient_floats(Activation kind, const ActivationParams& params, const float* grad, const float* x,
                                float* out, int64_t n);

}  // namespace brigade::kernels::cpu
