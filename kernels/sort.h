// Order along a dimension.
//
// Any dtype. A NaN counts as larger than any number, and -0 as equal to 0, as in PyTorch; equal
// elements stay in their order, so that there is one right result on every device.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// Values and where they were (int64).
struct Sorted {
  Tensor values;
  Tensor indices;
};
extern Kernel<Sorted(const Tensor& x, int dim, bool descending)> sort;
// The first k of the descending order (`largest`) or of the ascending one, in that order. Throws
// ValueError for a k outside of 0..size.
extern Kernel<Sorted(const Tensor& x, int64_t k, int dim, bool largest)> topk;

}  // namespace brigade::kernels
