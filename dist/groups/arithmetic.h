// CPU arithmetic for reductions over ranks.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <span>

namespace brigade::dist {

// Reduces elements [begin, end) of `inputs` (one per rank, in rank order, which makes the result bitwise deterministic)
// and writes the result to each of `outputs`, which may alias the inputs. Half types are combined in float; Avg
// multiplies the sum by 1 / inputs.size().
void reduce_elements(std::span<void* const> inputs, std::span<void* const> outputs, DType dtype, ReduceOp op,
                     int64_t begin, int64_t end);

// x *= factor
void scale_elements(void* x, DType dtype, double factor, int64_t n);

}  // namespace brigade::dist
