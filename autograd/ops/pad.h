// Borders around a tensor.
#pragma once

#include <brigade/core/tensor.h>

#include <vector>

namespace brigade {

enum class PadMode : uint8_t {
  Constant,   // with a number
  Reflect,    // mirrored at the first and last element, which are not repeated: c b | a b c | b a
  Replicate,  // with the first and last element: a a | a b c | c c
  Circular,   // as if the tensor repeated: b c | a b c | a b
};

// `pads`: numbers of elements before and after, from the last dimension backwards, for as many dimensions as change. A
// negative number removes elements. Any dtype; `value` is used by Constant only. Throws ShapeError for more pads than
// dimensions, for removing more elements than there are, and for a border longer than its source (Reflect: the size
// minus 1; Circular: the size).
Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, PadMode mode = PadMode::Constant, Scalar value = 0,
           SourceLocation where = SourceLocation::current());

}  // namespace brigade
