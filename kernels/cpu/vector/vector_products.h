// Products of a matrix and a vector in this project's own code, compiled for each instruction set: the
// matrix is read once, so no copy that a library makes pays. Blocks of a sum are added up in the type of
// the elements, the blocks in double, so that no digits are lost over the length; the order follows from
// the sizes alone, whatever the number of threads.
#pragma once

#include <brigade/kernels/cpu/vector/products.h>

namespace brigade::kernels::cpu {

inline constexpr int64_t kColumnsOfBlock = 1024;  // of the matrix: their sums stay in the first cache

// c = op(a) op(b) where c has one row or one column. False, with nothing done, where it has neither, and
// where a dot product would be so short that other ways are faster.
bool multiply_by_vector(const Factors<float>& of);
bool multiply_by_vector(const Factors<double>& of);

}  // namespace brigade::kernels::cpu
