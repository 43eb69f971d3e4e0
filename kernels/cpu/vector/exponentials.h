// Rows of exponentials of float32 numbers, for softmax and its relatives, compiled for each
// instruction set. Numbers are not above `shift`, so that no exponential overflows; one below
// exp(-87.7) is 0.
#pragma once

#include <brigade/kernels/cpu/vector/float_arrays.h>

#include <cstdint>

namespace brigade::kernels::cpu {

// The largest element; a NaN is passed over, and shows in the sums. -infinity of none.
float largest_float(const float* x, int64_t n);
// The sum of exp(x - shift).
float sum_exp_floats(const float* x, float shift, int64_t n);
// y = exp(x - shift), and the sum of them. y may be x.
float exp_floats(const float* x, float shift, float* y, int64_t n);
// y = factor * exp((x - shift) - log_sum) - less
void exp_gradient_floats(const float* x, float shift, float log_sum, float factor, float less, float* y, int64_t n);

// Of each row of x [rows, n]: the largest element, and the logarithm of the sum of exp(x -
// largest).
void log_sum_rows(const float* x, int64_t rows, int64_t n, float* largest, float* log_sums);
// Softmax of rows, or its logarithm; y [rows, n]. x and y may be one.
void softmax_rows(bool logarithm, const float* x, float* y, int64_t rows, int64_t n);
// The same of `rows` rows of halves, with the digits that halves keep. `room`: for the numbers of a row
// and kRoomBeyond more.
inline constexpr int64_t kRoomBeyond = 64;
void softmax_half_rows(bool logarithm, const FloatArrays& arrays, int64_t rows, float* room);
// Its gradient, from the gradient and the result y of `rows` rows.
void softmax_gradient_rows(bool logarithm, const FloatArrays& arrays, int64_t rows);

// The same for neighbouring columns: element k of column j is x[k * stride + j], k < n, j < width
// <= kStripColumns.
inline constexpr int64_t kStripColumns = 64;
void log_sum_columns(const float* x, int64_t n, int64_t stride, int64_t width, float* largest, float* log_sums);
// Of float32, or all of a half type: x, or the gradient and the result.
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
