// Reductions of dense arrays of float32, float16 or bfloat16 to one number, and of several rows, element by element, to
// a row of numbers, compiled for each instruction set. They compute in float32; the order depends on the length alone.
#pragma once

#include <brigade/core/dtype.h>

#include <cstdint>

namespace brigade::kernels::cpu {

// The largest and the smallest element (NaNs propagate), the product, the number of nonzero elements, the sum of
// absolute values and of squares, the largest and the smallest absolute value.
enum class Fold : uint8_t { Largest, Smallest, Product, Nonzeros, Sizes, Squares, LargestSize, SmallestSize };

// Folds n elements of dtype at `x`. Sums accumulate blocks in float32, the total in double.
float fold_row(Fold fold, DType dtype, const void* x, int64_t n);
// Folds element i into values[i].
void fold_into(Fold fold, DType dtype, const void* x, float* values, int64_t n);
// The index of the first element equal to `value`, or of the first NaN if `value` is NaN; n if there is none.
int64_t first_place(DType dtype, const void* x, float value, int64_t n);

}  // namespace brigade::kernels::cpu
