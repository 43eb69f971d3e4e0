// Rows of a table, by index.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// Indices int64 [...] into a weight [rows, width] -> [..., width]. The gradient of the weight is dense; the row
// `padding_idx` (-1: none) gets none. Throws ShapeError, DTypeError, IndexError (an index that is no row: names its
// position).
Tensor embedding(const Tensor& indices, const Tensor& weight, int64_t padding_idx = -1,
                 SourceLocation where = SourceLocation::current());

}  // namespace brigade
