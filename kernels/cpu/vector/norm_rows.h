// Rows of layer norm and RMS norm, and their gradients, of float32, float16 or bfloat16, compiled
// for each instruction set: elements are widened and rounded in registers.
#pragma once

#include <brigade/core/dtype.h>

#include <cstdint>

namespace brigade::kernels::cpu {

// `rows` dense rows of `n` elements; gain and shift hold n numbers; the lower half of their NaNs is 0.
struct NormRows {
  DType dtype;
  int64_t rows, n;
  const void* x;
  const float* gain;
  const float* shift;
  double eps;
  void* y;       // (x - mean) * rstd * gain + shift
  float* means;  // of each row; null for RMS norm, whose mean is 0
  float* rstds;  // 1 / sqrt(mean of squared distances + eps)
};
void normalize_rows(const NormRows& rows);

struct NormRowGradients {
  DType dtype;
  int64_t rows, n;
  const void* grad;
  const void* x;
  const float* gain;
  const float* means;  // null for RMS norm
  const float* rstds;
  // With h = (x - mean) * rstd and s = grad * gain: rstd * (s - mean(s) - h * mean(s * h)), without the first mean for
  // RMS norm; null if not wanted.
  void* out;
  // grad * h is added to `dots`, grad to `slopes`: n numbers each; null if not wanted.
  float* dots;
  float* slopes;
};
void norm_row_gradients(const NormRowGradients& rows);

}  // namespace brigade::kernels::cpu
