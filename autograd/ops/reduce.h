// Reductions over dimensions: sums, products, extremes, variances and norms; and scans along one.
#pragma once

#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/core/tensor.h>

namespace brigade {

// --- Sums, products and counts over dimensions. Empty `dims` means all dimensions, a number means one; negative ones
// count from the end. They throw IndexError, and ShapeError for a dimension named twice.

// Floating dtypes are kept; integers and bool sum to int64.
Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
           SourceLocation where = SourceLocation::current());
// Floating dtypes only.
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
            SourceLocation where = SourceLocation::current());
// Floating dtypes are kept; integers and bool give int64. The product of no elements is 1. The derivative is correct
// even where elements are 0.
Tensor prod(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
            SourceLocation where = SourceLocation::current());
// log(sum exp x), with the largest element subtracted first. Integers are converted to float32.
Tensor logsumexp(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
                 SourceLocation where = SourceLocation::current());

// No derivatives; a NaN is not 0.
// int64.
Tensor count_nonzero(const Tensor& x, const Dims& dims = {}, SourceLocation where = SourceLocation::current());
// Whether any, or all, elements differ from 0: bool (uint8 for uint8, as in PyTorch).
Tensor any(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
           SourceLocation where = SourceLocation::current());
Tensor all(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
           SourceLocation where = SourceLocation::current());

// The sum over the dimensions that broadcasting from `sizes` would add or stretch; x itself where it has these sizes,
// but an integer or bool for `sizes` [] becomes int64. Throws ShapeError where `sizes` do not broadcast to those of x.
Tensor sum_to(const Tensor& x, const Shape& sizes, SourceLocation where = SourceLocation::current());

// --- min, max, argmin, argmax, amin, amax, for all dtypes. NaN propagates: it counts as larger and as smaller than any
// number. They throw ShapeError for an empty reduction and IndexError for a dimension out of range.

// Values and int64 indices along one dimension (the first of equal ones); the gradient goes to the chosen elements.
struct MinMax {
  Tensor values;
  Tensor indices;
};
MinMax max(const Tensor& x, int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current());
MinMax min(const Tensor& x, int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current());
// Over all elements; equal extremes share the gradient evenly.
Tensor max(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor min(const Tensor& x, SourceLocation where = SourceLocation::current());
// Elementwise.
inline Tensor max(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current()) {
  return maximum(a, b, where);
}
inline Tensor min(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current()) {
  return minimum(a, b, where);
}
// Over `dims` (empty: all); equal extremes share the gradient evenly.
Tensor amax(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
            SourceLocation where = SourceLocation::current());
Tensor amin(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
            SourceLocation where = SourceLocation::current());

// int64, no derivative. Without a dimension: the index in row-major order among all elements.
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current());
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current());
Tensor argmax(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor argmin(const Tensor& x, SourceLocation where = SourceLocation::current());

// --- Variances and standard deviations over `dims` (empty: all; negative ones count from the end).
//
// The sum of squared distances from the mean is divided by max(0, n - correction): correction 1 (or `true`, PyTorch's
// older `unbiased`) is Bessel's, 0 (`false`) treats the elements as the whole population. Too few elements give NaN.
// Numerically stable even if the mean is large (kernels/reduce.h). Floating dtypes. They throw DTypeError,
// IndexError, ShapeError for a dimension named twice.

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

// --- Norms, and functions that normalize by them. Empty `dims` means all dimensions; negative ones count from the end.
// Floating dtypes. They throw DTypeError, IndexError, ShapeError.

// (sum |x|^p)^(1/p). p = infinity: the largest |x|; -infinity: the smallest; 0: the number of nonzero elements; any
// other number, negative ones too. The gradient at 0, where it does not exist or is not unique, is 0; for p = 0 it is 0
// everywhere; for an infinite p, equal extremes share it. Throws ShapeError for an infinite or negative norm of no
// elements.
Tensor norm(const Tensor& x, double p = 2, const Dims& dims = {}, bool keepdim = false,
            SourceLocation where = SourceLocation::current());
// The same, by the name in torch.linalg.
Tensor vector_norm(const Tensor& x, double ord = 2, const Dims& dims = {}, bool keepdim = false,
                   SourceLocation where = SourceLocation::current());
// The Frobenius norm of the matrices along two dimensions.
Tensor matrix_norm(const Tensor& x, const Dims& dims = {-2, -1}, bool keepdim = false,
                   SourceLocation where = SourceLocation::current());

// x / max(norm, eps), the norm of order p along `dim`.
Tensor normalize(const Tensor& x, double p = 2, int64_t dim = 1, double eps = 1e-12,
                 SourceLocation where = SourceLocation::current());
// a . b / (max(|a|, eps) max(|b|, eps)) along `dim`; shapes broadcast. As in PyTorch, the gradient uses the norms
// themselves even where eps is larger. Throws IndexError for a dimension that the broadcast shape does not have.
Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim = 1, double eps = 1e-8,
                         SourceLocation where = SourceLocation::current());

// --- Scans along a dimension: element i of the result is computed from elements 0..i.
//
// Integers and bool give int64 where they are allowed; half types are computed in float and rounded once. They throw
// IndexError for a dimension out of range, and DTypeError.

Tensor cumsum(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());
// The gradient is correct even where elements are 0.
Tensor cumprod(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());
// log(cumsum(exp(x))), correct even where exp overflows. Floating dtypes. The gradient of -inf is 0.
Tensor logcumsumexp(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());

// y[i] = b[i] + a[i] y[i - 1] along `dim`, with y[-1] = 0; from the end, with y[i + 1], when `reverse`. Equal shapes,
// floating dtypes. cumsum is the case a = 1. The gradient of b is a recurrence in the opposite direction.
Tensor linear_recurrence(const Tensor& b, const Tensor& a, int64_t dim, bool reverse = false,
                         SourceLocation where = SourceLocation::current());

}  // namespace brigade
