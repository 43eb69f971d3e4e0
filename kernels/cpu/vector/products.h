// Products of matrices in this project's own code, compiled for each instruction set: of small
// ones, for which a library's preparations take longer than the arithmetic, and of all that no
// library is there for.
#pragma once

#include <cstdint>

namespace brigade::kernels::cpu {

// What gemm() of detail/gemm.h is given; `accumulate`: beta is 1.
template <class T>
struct Factors {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  bool accumulate;
  T* c;
  int64_t ldc;
};

// False when the product is not small; then nothing was done.
bool multiply_if_small(const Factors<float>& of);
bool multiply_if_small(const Factors<double>& of);
// The elements of `room` that multiply_thin needs, above 0 where it is the fastest way: where a has
// few rows (a batch, of a linear layer's forward) and b is transposed.
int64_t thin_room(const Factors<float>& of);
void multiply_thin(const Factors<float>& of, float* room);
// Of any size.
void multiply(const Factors<float>& of);
void multiply(const Factors<double>& of);

}  // namespace brigade::kernels::cpu
