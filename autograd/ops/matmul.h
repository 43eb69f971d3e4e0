// Matrix products.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// As PyTorch's matmul: 1-d x 1-d is a dot product; a 1-d operand is a row on the left and a column
// on the right; otherwise products of the last two dimensions with the leading ones broadcast. One
// floating dtype. Throws ShapeError "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
// DTypeError.
Tensor matmul(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
// Two matrices.
Tensor mm(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
// Two batches of matrices [batch, n, k] x [batch, k, m].
Tensor bmm(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
// x [..., in] by weight [out, in] transposed, plus bias [out] (or undefined): [..., out]; by weight [in]: [...].
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              SourceLocation where = SourceLocation::current());

// relu(linear(x, weight, bias)), and gelu(linear(x, weight, bias)) by the tanh approximation
// (GeluApproximation::Tanh, not the exact GELU that gelu() takes unless told). On CUDA devices
// cuBLASLt applies bias and activation to the sums before it writes them, where its rules allow
// that (not in float64): the result of the product does not go to memory and back for the
// activation. Elsewhere, and on the CPU, they are the two steps. Backward of linear_relu needs the
// result, that of linear_gelu what GELU was taken of, which is written beside the result when a
// gradient is wanted. Half types: the fused activation is taken of the sum before rounding, so that
// results differ from the two steps by a rounding. A NaN: what ReLU makes of it in the fused form
// is the library's choice, and may be 0; the two steps hand it on. (PyTorch's nearest:
// torch._addmm_activation, which has no derivative.) Throw as linear.
Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                   SourceLocation where = SourceLocation::current());
Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                   SourceLocation where = SourceLocation::current());

}  // namespace brigade
