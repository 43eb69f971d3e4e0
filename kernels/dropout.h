// Dropout whose mask is never stored: forward and backward recompute it from the position in the random stream.
#pragma once

#include <brigade/core/random.h>
#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// x * mask / (1 - p); element i is kept when uniform(word i of the stream) >= p. Applied to the gradient, it is its own
// backward.
extern Kernel<Tensor(const Tensor& x, double p, PhiloxState state)> dropout;

// Shared by all devices. Throws ValueError unless 0 <= p <= 1.
void check_dropout_probability(double p);

}  // namespace brigade::kernels
