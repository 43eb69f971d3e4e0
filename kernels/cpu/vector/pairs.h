// The elements of two ranks, added: most of what an all-reduce on one machine does. Compiled for each instruction set.
#pragma once

#include <cstdint>

namespace brigade::kernels::cpu {

// The sums of the squares of what two ranks had. In double: finite exactly when all elements are.
struct PairSquares {
  double first = 0;
  double second = 0;
};

// x[i] = y[i] = (a[i] + b[i]) * factor for i < n, rounded after the sum and after the product. x may be a, and y may be b.
void add_pair(const float* a, const float* b, float factor, float* x, float* y, int64_t n);
// The same, and measures a and b in the same pass.
PairSquares add_and_measure_pair(const float* a, const float* b, float factor, float* x, float* y, int64_t n);

}  // namespace brigade::kernels::cpu
