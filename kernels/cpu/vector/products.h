// Native matrix products, compiled for each instruction set: for small matrices, where a library's setup takes longer
// than the arithmetic, and for all products without a library.
#pragma once

#include <cstdint>

namespace brigade::kernels::cpu {

// The arguments of gemm() in detail/gemm.h; `accumulate`: beta is 1.
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

// Returns false without doing anything when the product is not small.
bool multiply_if_small(const Factors<float>& of);
bool multiply_if_small(const Factors<double>& of);
// The number of `room` elements that multiply_thin needs, or 0 if it is not the fastest way. It is the fastest if a has
// few rows (a small batch in a linear layer's forward) and b is transposed.
int64_t thin_room(const Factors<float>& of);
void multiply_thin(const Factors<float>& of, float* room);
// Products of any size.
void multiply(const Factors<float>& of);
void multiply(const Factors<double>& of);

// --- Native matrix-vector products, compiled for each instruction set: the matrix is read only once, so a library's
// copy would not pay off. Blocks are summed in the type of the elements, their total in double, so that long sums do
// not lose digits; the order depends on the sizes alone, not on the number of threads.

inline constexpr int64_t kColumnsOfBlock = 1024;  // of the matrix; their sums stay in the L1 cache

// c = op(a) op(b) where c has one row or one column. Returns false without doing anything if it has neither, or if the
// dot products are so short that other ways are faster.
bool multiply_by_vector(const Factors<float>& of);
bool multiply_by_vector(const Factors<double>& of);

}  // namespace brigade::kernels::cpu
