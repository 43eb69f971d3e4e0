// softmax, softmin and log_softmax along one dimension; floating dtypes.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

Tensor softmax(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());
// softmax(-x)
Tensor softmin(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());
Tensor log_softmax(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());

}  // namespace brigade
