// The triangles of matrices.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// x [.., rows, columns], any dtype, with zeros above the diagonal (i, i + diagonal). Throws
// ShapeError for fewer than two dimensions.
Tensor tril(const Tensor& x, int64_t diagonal = 0, SourceLocation where = SourceLocation::current());
// The same with zeros below it.
Tensor triu(const Tensor& x, int64_t diagonal = 0, SourceLocation where = SourceLocation::current());

}  // namespace brigade
