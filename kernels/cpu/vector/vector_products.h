// Native matrix-vector products, compiled for each instruction set: the matrix is read only once, so a library's copy
// would not pay off. Blocks are summed in the type of the elements, their total in double, so that long sums do not
// lose digits; the order depends on the sizes alone, not on the number of threads.
#pragma once

#include <brigade/kernels/cpu/vector/products.h>

namespace brigade::kernels::cpu {

inline constexpr int64_t kColumnsOfBlock = 1024;  // of the matrix; their sums stay in the L1 cache

// c = op(a) op(b) where c has one row or one column. Returns false without doing anything if it has neither, or if the
// dot products are so short that other ways are faster.
bool multiply_by_vector(const Factors<float>& of);
bool multiply_by_vector(const Factors<double>& of);

}  // namespace brigade::kernels::cpu
