// Named products of vectors and matrices, and combinations of several products. One floating dtype, unless stated
// otherwise. They throw ShapeError, DTypeError.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// The dot product of two vectors of equal length.
Tensor dot(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
// Matrix [n, m] times vector [m].
Tensor mv(const Tensor& matrix, const Tensor& vector, SourceLocation where = SourceLocation::current());
// a [n], b [m]: [n, m], a_i b_j. All dtypes.
Tensor outer(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());

// beta * input + alpha * product; `input` broadcasts to the product's shape. With beta 0 it is not read, so its NaNs do
// not propagate.
// a [n, k] b [k, m]
Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1,
             SourceLocation where = SourceLocation::current());
// matrix [n, m], vector [m]
Tensor addmv(const Tensor& input, const Tensor& matrix, const Tensor& vector, double beta = 1, double alpha = 1,
             SourceLocation where = SourceLocation::current());
// a [batch, n, k], b [batch, k, m]
Tensor baddbmm(const Tensor& input, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1,
               SourceLocation where = SourceLocation::current());
// The same, summed over the batch: [n, m].
Tensor addbmm(const Tensor& input, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1,
              SourceLocation where = SourceLocation::current());

// y_o = a weight_o b + bias_o: a [..., n], b [..., m] with equal leading dimensions, weight [out,
// n, m], bias [out] (may be undefined): [..., out].
Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias = {},
                SourceLocation where = SourceLocation::current());
// Kronecker product, up to 32 dimensions; sizes multiply. All dtypes.
Tensor kron(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
// Sum of the diagonal of a matrix; integers give int64. All dtypes.
Tensor trace(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace brigade
