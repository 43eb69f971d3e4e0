// Sums and extremes over dimensions. Floating sums accumulate pairwise per row in float (half
// types) or in the type itself (float32, float64); integer and bool sums give int64. Deterministic:
// the result does not depend on the number of threads.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// Over `dims` (empty: all of them). `out` as in MatmulOptions.
struct ReduceOptions {
  Shape dims;
  bool keepdim = false;
  Tensor out = {};
  bool accumulate = false;
};
extern Kernel<Tensor(const Tensor& x, const ReduceOptions& options)> sum;
// Floating dtypes only.
extern Kernel<Tensor(const Tensor& x, const ReduceOptions& options)> mean;
// Extremes over one dimension: values and int64 indices (the first among equal elements). Throws ShapeError on an empty
// dimension.
struct Extremes {
  Tensor values;
  Tensor indices;
};
extern Kernel<Extremes(const Tensor& x, int dim, bool keepdim)> max;
extern Kernel<Extremes(const Tensor& x, int dim, bool keepdim)> min;
extern Kernel<Tensor(const Tensor& x, int dim, bool keepdim)> argmax;
// Gradient of the values: a tensor of `x_sizes` with grad at the indices along `dim` and zeros elsewhere. Floating
// dtypes; grad and indices have one element per slice of x along `dim`.
extern Kernel<Tensor(const Tensor& grad, const Tensor& indices, const Shape& x_sizes, int dim)> extremes_backward;

// Sum of `x` over the dimensions that broadcasting added or stretched, so that the result has
// `sizes`: the gradient of expand. `x` itself when nothing was stretched. `out` as in
// MatmulOptions.
Tensor sum_to(const Tensor& x, const Shape& sizes, const Tensor& out = {}, bool accumulate = false);

}  // namespace brigade::kernels
