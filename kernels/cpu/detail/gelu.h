// GELU in float32, x Phi(x) with the normal distribution Phi, and its derivative: from a table of polynomials that fits
// into AVX-512 registers.
//
// By symmetry the upper tail t(z) = 1 - Phi(z) of z = |x| is enough: gelu(x) = max(x, 0) - z t(z), and the derivative
// is u(z) for negative x and 1 - u(z) for others, u(z) = t(z) - z phi(z). Both die out: z = 0 .. 6.2 is cut into 31
// pieces around the multiples of 1/5, each with a polynomial of degree 4 through its Chebyshev points. Absolute errors
// stay below 1e-7 (tested).
#pragma once

#include <cstdint>

namespace brigade::kernels::cpu {

#ifdef __AVX512F__
inline constexpr bool kHasGeluTable = true;
#else
inline constexpr bool kHasGeluTable = false;
#endif

// y = gelu(x), out = grad * gelu'(x). Only where kHasGeluTable.
void gelu_by_table(const float* x, float* y, int64_t count);
void gelu_backward_by_table(const float* grad, const float* x, float* out, int64_t count);

}  // namespace brigade::kernels::cpu
