// Exponentials of float32 rows, for softmax and related functions, compiled for each instruction set. Inputs must be at
// most `shift`, so that no exponential overflows; exponentials below exp(-87.7) are 0.
#pragma once

#include <brigade/kernels/cpu/vector/elementwise.h>

#include <cstdint>

namespace brigade::kernels::cpu {

// The largest element; -infinity for none. NaNs are skipped, and appear in the sums.
float largest_float(const float* x, int64_t n);
// The sum of exp(x - shift).
float sum_exp_floats(const float* x, float shift, int64_t n);
// y = exp(x - shift), and the sum of them. y may be x.
float exp_floats(const float* x, float shift, float* y, int64_t n);
// y = factor * exp((x - shift) - log_sum) - less
void exp_gradient_floats(const float* x, float shift, float log_sum, float factor, float less, float* y, int64_t n);

// For each row of x [rows, n]: the largest element, and the logarithm of the sum of exp(x - largest).
void log_sum_rows(const float* x, int64_t rows, int64_t n, float* largest, float* log_sums);
// Softmax of rows, or its logarithm; y [rows, n]. y may be x.
void softmax_rows(bool logarithm, const float* x, float* y, int64_t rows, int64_t n);
// The same for `rows` rows of halves, with half precision. `room`: space for the numbers of a row plus kRoomBeyond.
inline constexpr int64_t kRoomBeyond = 64;
void softmax_half_rows(bool logarithm, const FloatArrays& arrays, int64_t rows, float* room);
// The gradient of softmax or log_softmax, from the output gradient and the result y, for `rows` rows.
void softmax_gradient_rows(bool logarithm, const FloatArrays& arrays, int64_t rows);

// The same for adjacent columns: element k of column j is x[k * stride + j], k < n, j < width <= kStripColumns.
inline constexpr int64_t kStripColumns = 64;
void log_sum_columns(const float* x, int64_t n, int64_t stride, int64_t width, float* largest, float* log_sums);
// Columns of x, or of the gradient and the result; all of float32 or all of one half type.
struct FloatColumns {
  DType dtype;
  const void* const* in;
  void* out;
  int64_t n, stride, width;
};
void softmax_columns(bool logarithm, const FloatColumns& columns);
void softmax_gradient_columns(bool logarithm, const FloatColumns& columns);
// y[j] = factor[j] * exp((x[j] - shift[j]) - log_sum[j]) - less[j]
void exp_gradient_columns(const float* x, const float* shift, const float* log_sum, const float* factor,
                          const float* less, float* y, int64_t width);

}  // namespace brigade::kernels::cpu
