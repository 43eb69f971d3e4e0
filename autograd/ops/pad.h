// Borders around a tensor.
#pragma once

#include <brigade/core/tensor.h>

#include <vector>

namespace brigade {

enum class PadMode : uint8_t {
  Constant,   // with a number
  Reflect,    // mirrored at the first and last element, which do not come twice: c b | a b c | b a
  Replicate,  // by the first and last element: a a | a b c | c c
  Circular,   // as if the tensor began anew: b c | a b c | a b
};

// `pads`: elements before and after, the last dimension first, then the one before it, as many as
// are to change. A negative one takes elements away. Any dtype; `value` counts for Constant only.
// Throws ShapeError when there are more pads than dimensions, when one takes away more than there
// is, and when a border is longer than what it is made from (Reflect: one less than the size;
// Circular: the size).
Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, PadMode mode = PadMode::Constant, Scalar value = 0,
           SourceLocation where = SourceLocation::current());

}  // namespace brigade
