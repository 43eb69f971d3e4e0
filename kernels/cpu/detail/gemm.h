// Matrix products and convolutions of dense arrays, by native loops or a library.
#pragma once

#include <brigade/kernels/common/conv.h>
#include <brigade/kernels/common/matmul.h>

#include <cstdint>

namespace brigade::kernels::cpu {

// --- One matrix product, row-major: c = op(a) op(b) + beta * c with beta 0 or 1.

// op(a) is [m, k], op(b) is [k, n], c is [m, n]; `lda` is the row length of a as it is stored. With
// beta 0, c may be uninitialized.
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
          const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda,
          const double* b, int64_t ldb, double beta, double* c, int64_t ldc);

// --- Products of bfloat16 matrices through oneDNN primitives, cached by shape.

// plan.out (+)= a b, rounded once. Returns false without doing anything where float32 is better or required: for dtypes
// other than bfloat16, for small products, and on processors without bfloat16 instructions (which flush subnormals to
// 0).
bool onednn_matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options, const MatmulPlan& plan);

// --- Convolution through oneDNN primitives, cached by shape.

// True for float32 if oneDNN is present, and for bfloat16 if the processor also has instructions for it.
bool onednn_conv_takes(DType dtype);
// The number of passes that the calling thread has run in that dtype (for tests).
int64_t onednn_conv_passes(DType dtype);

// Contiguous NCHW, all of one dtype except `bias` (may be undefined) and `dweight`, which are always float32. bfloat16
// accumulates in float32 and is rounded once, after the bias is added. Each returns false without doing anything if
// oneDNN does not take the dtype or has no fast primitive for the shape.
bool onednn_conv_forward(const ConvShape& shape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                         const Tensor& y);
bool onednn_conv_backward_input(const ConvShape& shape, const Tensor& grad, const Tensor& weight, const Tensor& dx);
bool onednn_conv_backward_weight(const ConvShape& shape, const Tensor& grad, const Tensor& x, const Tensor& dweight,
                                 bool accumulate);

}  // namespace brigade::kernels::cpu
