// Elementwise addition of the data of two ranks: most of the work of an all-reduce on one machine. Compiled for each
// instruction set.
#pragma once

#include <cstdint>

namespace brigade::kernels::cpu {

// The sums of squares of the data of two ranks. In double: finite exactly when all elements are.
struct PairSquares {
  double first = 0;
  double second = 0;
};

// x[i] = y[i] = (a[i] + b[i]) * factor for i < n, rounded after the sum and after the product. x may be a, and y may be b.
void add_pair(const float* a, const float* b, float factor, float* x, float* y, int64_t n);
// The same, and returns the sums of squares of a and b from the same pass.
PairSquares add_and_measure_pair(const float* a, const float* b, float factor, float* x, float* y, int64_t n);

}  // namespace brigade::kernels::cpu
