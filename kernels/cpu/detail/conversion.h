// Conversion of dense arrays between dtypes, and copies of words between strided and dense arrays.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>

namespace brigade::kernels::cpu {

// to[i] = from[i] for n elements, as as_element (common/elements.h) does through the compute_type of
// `from_dtype`. The arrays do not overlap.
void convert(DType from_dtype, const void* from, DType to_dtype, void* to, int64_t n);
// The address of element i of a dense tensor.
void* element(const Tensor& tensor, int64_t i);
// convert() for n elements of a dense tensor, from element `first` on.
void read_elements(const Tensor& from, int64_t first, DType to_dtype, void* to, int64_t n);
void write_elements(DType from_dtype, const void* from, const Tensor& to, int64_t first, int64_t n);

// Elements of `bytes` bytes (1, 2, 4 or 8), `step` elements apart.
void gather_words(const void* from, int64_t step, size_t bytes, void* to, int64_t n);
void scatter_words(const void* from, size_t bytes, void* to, int64_t step, int64_t n);

}  // namespace brigade::kernels::cpu
