// Reductions of dense arrays of float32, float16 or bfloat16 to one number, and of rows beside each
// other to a row of numbers, compiled for each instruction set. In float32; their order depends on the
// length alone.
#pragma once

#include <brigade/core/dtype.h>

#include <cstdint>

namespace brigade::kernels::cpu {

// Of the elements: the largest and the smallest (a NaN wins), the product, how many are not 0, the sum
// of absolute values and of squares, the largest and the smallest absolute value.
enum class Fold : uint8_t { Largest, Smallest, Product, Nonzeros, Sizes, Squares, LargestSize, SmallestSize };

// n elements from `x` on, which are of that dtype. Sums are of blocks in float32, of the blocks in
// double.
float fold_row(Fold fold, DType dtype, const void* x, int64_t n);
// Takes element i into values[i].
void fold_into(Fold fold, DType dtype, const void* x, float* values, int64_t n);
// The first element that is equal to `value`, or the first NaN where it is one; n for none.
int64_t first_place(DType dtype, const void* x, float value, int64_t n);

}  // namespace brigade::kernels::cpu
