// Rows of a table, by index.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// Indices int64 [...] into a weight [rows, width] -> [..., width]. The gradient of the weight is dense; the row
// `padding_idx` (-1: none) gets none. With scale_grad_by_freq the gradient of a row is divided by the number of indices
// that select it. Throws ShapeError, DTypeError, ValueError, IndexError (for an index that is not a row, with its
// position).
Tensor embedding(const Tensor& indices, const Tensor& weight, int64_t padding_idx = -1,
                 SourceLocation where = SourceLocation::current());
Tensor embedding(const Tensor& indices, const Tensor& weight, int64_t padding_idx, bool scale_grad_by_freq,
                 SourceLocation where = SourceLocation::current());

}  // namespace brigade
