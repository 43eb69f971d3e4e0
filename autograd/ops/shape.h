// Views and copies in another shape, and casts. The corresponding methods of Tensor (reshape, permute, ...) are defined
// here as well.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// A view where the strides allow it, a copy otherwise; one entry may be -1.
Tensor reshape(const Tensor& x, const Shape& shape, SourceLocation where = SourceLocation::current());
Tensor permute(const Tensor& x, const Shape& dims, SourceLocation where = SourceLocation::current());
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1, SourceLocation where = SourceLocation::current());
Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1,
               SourceLocation where = SourceLocation::current());
inline Tensor unsqueeze(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current()) {
  return x.unsqueeze(dim, where);
}
inline Tensor squeeze(const Tensor& x, SourceLocation where = SourceLocation::current()) { return x.squeeze(where); }
inline Tensor squeeze(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current()) {
  return x.squeeze(dim, where);
}
// Sizes of 1 are stretched without a copy; -1 keeps a size.
Tensor expand(const Tensor& x, const Shape& shape, SourceLocation where = SourceLocation::current());

}  // namespace brigade
