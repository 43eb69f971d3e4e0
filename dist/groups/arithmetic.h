// The arithmetic of reductions over ranks on a cpu.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <span>

namespace brigade::dist {

// Elements [begin, end): combines `inputs` (one per rank, in rank order: the order fixes the bits)
// and writes the result to every one of `outputs`, which may be the inputs. Half types are combined
// in float; Avg multiplies the sum by 1 / inputs.size().
void reduce_elements(std::span<void* const> inputs, std::span<void* const> outputs, DType dtype, ReduceOp op,
                     int64_t begin, int64_t end);

// x *= factor
void scale_elements(void* x, DType dtype, double factor, int64_t n);

}  // namespace brigade::dist
