// Sorting along a dimension.
//
// Any dtype. A NaN counts as larger than any number, and -0 as equal to 0, as in PyTorch; sorting is stable, so that
// all devices give the same result.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// Sorted values and their original indices (int64).
struct Sorted {
  Tensor values;
  Tensor indices;
};
extern Kernel<Sorted(const Tensor& x, int dim, bool descending)> sort;
// The first k elements in descending (`largest`) or ascending order, sorted. Throws ValueError for a k outside 0..size.
extern Kernel<Sorted(const Tensor& x, int64_t k, int dim, bool largest)> topk;

}  // namespace brigade::kernels
