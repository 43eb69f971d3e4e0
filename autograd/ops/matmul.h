// Linear algebra: matrix products, named products, sums by Einstein's convention, triangles.
#pragma once

#include <brigade/core/tensor.h>

#include <string>
#include <vector>

namespace brigade {

// --- Matrix products.

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

// --- Named products of vectors and matrices, and combinations of several products. One floating dtype, unless stated
// otherwise. They throw ShapeError, DTypeError.

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

// --- Products and sums by Einstein's convention.

// Like torch.einsum: "bij,bjk->bik". Each letter (a-z, A-Z) names a dimension; dimensions with the
// same letter have the same size, or 1, which is stretched. A letter that repeats within an operand
// takes the diagonal. Letters that the output does not name are summed over. Without "->" the
// output has the letters that appear once, capitals first, in alphabetical order. "..." stands for
// the dimensions that are not named: they are broadcast, and come first in an output that is not
// given. Spaces are ignored. Several operands are multiplied from left to right, by matrix products
// (of one dtype) where something is summed over, element by element (in the common dtype) otherwise.
// Throws ValueError for a malformed equation and ShapeError for operands that do not fit it; both name the subscript.
Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands,
              SourceLocation where = SourceLocation::current());

// --- The triangles of matrices.

// x [.., rows, columns], any dtype, with zeros above the diagonal (i, i + diagonal). Throws
// ShapeError for fewer than two dimensions.
Tensor tril(const Tensor& x, int64_t diagonal = 0, SourceLocation where = SourceLocation::current());
// The same with zeros below it.
Tensor triu(const Tensor& x, int64_t diagonal = 0, SourceLocation where = SourceLocation::current());

}  // namespace brigade
