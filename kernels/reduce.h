// Reductions over dimensions: sums, extremes, products, norms, logsumexp and variances; and scans along one.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// --- Sums and extremes over dimensions. Floating sums accumulate pairwise per row in float (half types) or in the type
// itself (float32, float64); integer and bool sums give int64. Deterministic: the result does not depend on the number
// of threads.

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

// --- The largest and the smallest element over dimensions, without their indices (max and min return indices).

// Over `dims` (empty: all of them); all dtypes. NaNs propagate. Throws ShapeError for an empty reduction, IndexError.
extern Kernel<Tensor(const Tensor& x, const Shape& dims, bool keepdim)> amax;
extern Kernel<Tensor(const Tensor& x, const Shape& dims, bool keepdim)> amin;

// --- Products over dimensions.

// Over `dims` (empty: all of them). Floating dtypes are kept (half types are multiplied in float); integers and bool
// give int64. The product of no elements is 1. Throws ShapeError, IndexError.
extern Kernel<Tensor(const Tensor& x, const Shape& dims, bool keepdim)> prod;

// --- Vector norms over dimensions.

// (sum |x|^p)^(1/p) over `dims` (empty: all of them); p may be inf or -inf (the largest or the smallest |x|), 0 (the
// number of nonzero elements) or negative. Floating dtypes; computed in float for half types. Throws DTypeError,
// IndexError, ShapeError for an infinite or negative p over no elements.
extern Kernel<Tensor(const Tensor& x, double p, const Shape& dims, bool keepdim)> norm;

// --- The logarithm of a sum of exponentials over dimensions.

// log(sum exp x) over `dims` (empty: all of them), with the largest element subtracted first. Floating dtypes; computed
// in float for half types. The result is -inf for no elements or only -inf. Throws DTypeError, ShapeError, IndexError.
extern Kernel<Tensor(const Tensor& x, const Shape& dims, bool keepdim)> logsumexp;

// --- Variances over dimensions, without cancellation: each part of a slice is centered on its own mean, and parts are
// combined with Chan's formula (common/reducers.h).

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

// --- Cumulative operations (scans) along a dimension.

enum class ScanOp : uint8_t { Sum, Product, LogSumExp };

// Element i along `dim` is the sum, product or log(sum(exp)) of elements 0..i, or i..end when `reverse`. Integers and
// bool give int64; half types run in float. LogSumExp is for floating dtypes and stays accurate where exp overflows.
// Throws DTypeError.
extern Kernel<Tensor(const Tensor& x, int dim, ScanOp op, bool reverse)> scan;

// y[i] = b[i] + a[i] y[i - 1] along `dim`, or y[i] = b[i] + a[i] y[i + 1] when `reverse`; beyond
// the end y is 0. Equal shapes and floating dtypes. Throws ShapeError, DTypeError, DeviceError.
extern Kernel<Tensor(const Tensor& b, const Tensor& a, int dim, bool reverse)> linear_recurrence;

}  // namespace brigade::kernels
