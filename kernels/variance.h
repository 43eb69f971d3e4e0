// Variances over dimensions, without cancellation: each part of a slice is centered on its own mean, and parts are
// combined with Chan's formula (common/reducers.h).
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

struct Variance {
  Tensor variance, mean;  // of the dtype of x; `variance` holds the standard deviation when `root` is set
};
// Sum of squared distances from the mean, divided by max(0, n - correction), over `dims` (empty: all of them); with
// `root`, its square root, which may be in the dtype's range where the variance is not. Floating dtypes; computed in
// float for half types (the CPU combines parts in float64). Throws DTypeError, ShapeError, IndexError.
extern Kernel<Variance(const Tensor& x, const Shape& dims, double correction, bool keepdim, bool root)> variance;

// factor[slice] * (x - mean[slice]): the gradient of x, where `factor` is 2 / (n - correction) times the gradient of
// the variance. `factor` and `mean` have the dtype of x and one element for each slice over `dims`. Throws DTypeError,
// ShapeError.
extern Kernel<Tensor(const Tensor& factor, const Tensor& x, const Tensor& mean, const Shape& dims)> variance_backward;

}  // namespace brigade::kernels
