// One matrix product, row-major: c = op(a) op(b) + beta * c with beta 0 or 1.
#pragma once

#include <cstdint>

namespace brigade::kernels::cpu {

// op(a) is [m, k], op(b) is [k, n], c is [m, n]; `lda` is the row length of a as it is stored. With
// beta 0, c may be uninitialized.
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
          const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda,
          const double* b, int64_t ldb, double beta, double* c, int64_t ldc);

}  // namespace brigade::kernels::cpu
