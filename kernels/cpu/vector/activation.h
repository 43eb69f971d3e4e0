// Activations and their gradients over dense arrays, computed in float32, compiled for each
// instruction set.
#pragma once

#include <brigade/kernels/common/activation.h>
#include <brigade/kernels/cpu/vector/float_arrays.h>

namespace brigade::kernels::cpu {

// f(x), or f(grad, x or y), of each element.
void activation_floats(const ActivationFunction& f, const FloatArrays& arrays);

}  // namespace brigade::kernels::cpu
