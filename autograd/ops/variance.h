// Variances and standard deviations over `dims` (empty: all; negative ones count from the end).
//
// The sum of squared distances from the mean is divided by max(0, n - correction): correction 1 (or `true`, PyTorch's
// older `unbiased`) is Bessel's, 0 (`false`) treats the elements as the whole population. Too few elements give NaN.
// Numerically stable even if the mean is large (kernels/variance.h). Floating dtypes. They throw DTypeError,
// IndexError, ShapeError for a dimension named twice.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

Tensor var(const Tensor& x, const Dims& dims = {}, double correction = 1, bool keepdim = false,
           SourceLocation where = SourceLocation::current());
// Where all elements are equal the gradient is 0.
Tensor std(const Tensor& x, const Dims& dims = {}, double correction = 1, bool keepdim = false,
           SourceLocation where = SourceLocation::current());

// Both in one pass over x; `spread` is the variance or the standard deviation.
struct SpreadAndMean {
  Tensor spread, mean;
};
SpreadAndMean var_mean(const Tensor& x, const Dims& dims = {}, double correction = 1, bool keepdim = false,
                       SourceLocation where = SourceLocation::current());
SpreadAndMean std_mean(const Tensor& x, const Dims& dims = {}, double correction = 1, bool keepdim = false,
                       SourceLocation where = SourceLocation::current());

}  // namespace brigade
