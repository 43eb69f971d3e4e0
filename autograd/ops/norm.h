// Norms, and functions that normalize by them. Empty `dims` means all dimensions; negative ones count from the end.
// Floating dtypes. They throw DTypeError, IndexError, ShapeError.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

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

}  // namespace brigade
