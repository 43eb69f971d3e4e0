// Matrix products.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// As PyTorch's matmul: 1-d x 1-d is a dot product; a 1-d operand is a row on the left and a column on the right;
// otherwise products of the last two dimensions with the leading ones broadcast. One floating dtype. Throws ShapeError
// "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", DTypeError.
Tensor matmul(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
// Two matrices.
Tensor mm(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
// Two batches of matrices [batch, n, k] x [batch, k, m].
Tensor bmm(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
// x [..., in] times weight [out, in] transposed, plus bias [out] (may be undefined): [..., out].
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              SourceLocation where = SourceLocation::current());

}  // namespace brigade
