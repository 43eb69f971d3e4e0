// Matrix products.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// Like PyTorch's matmul: 1-d x 1-d is a dot product; a 1-d operand is a row on the left and a column
// on the right; otherwise products of the last two dimensions with the leading ones broadcast. One
// floating dtype. Throws ShapeError "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
// DTypeError.
Tensor matmul(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
// Two matrices.
Tensor mm(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
// Two batches of matrices [batch, n, k] x [batch, k, m].
Tensor bmm(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
// x [..., in] by weight [out, in] transposed, plus bias [out] (or undefined): [..., out]; by weight [in], plus bias []:
// [...]. One floating dtype. Throws ShapeError, DTypeError.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              SourceLocation where = SourceLocation::current());

// relu(linear(x, weight, bias)), and gelu(linear(x, weight, bias)) with the tanh approximation
// (GeluApproximation::Tanh, not the exact GELU that gelu() computes by default). On CUDA devices cuBLASLt applies bias
// and activation to the sums before it writes them, if its rules allow that (not in float64), so the activation needs
// no extra pass over memory. Elsewhere, and on the CPU, linear and activation are two steps. Backward of linear_relu
// needs the result; that of linear_gelu needs the input of GELU, which is written in addition to the result when a
// gradient is needed. Half types: the fused activation reads the sum before rounding, so results differ from the two
// steps by a rounding. NaN: the fused ReLU may turn it into 0, at the library's choice; the two steps propagate it.
// (The closest function in PyTorch is torch._addmm_activation, which has no derivative.) They throw like linear.
Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                   SourceLocation where = SourceLocation::current());
Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                   SourceLocation where = SourceLocation::current());

}  // namespace brigade
