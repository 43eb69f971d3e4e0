// CPU arithmetic for reductions over ranks.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <cstdint>
#include <span>
#include <utility>

namespace brigade::dist {

// Reduces elements [begin, end) of `inputs` (one per rank, in rank order, which makes the result bitwise deterministic)
// and writes the result to each of `outputs`, which may alias the inputs. Half types are combined in float; Avg
// multiplies the sum by 1 / inputs.size().
void reduce_elements(std::span<void* const> inputs, std::span<void* const> outputs, DType dtype, ReduceOp op,
                     int64_t begin, int64_t end);

// x *= factor
void scale_elements(void* x, DType dtype, double factor, int64_t n);

}  // namespace brigade::dist

namespace brigade::dist::shm {

// --- The share of elements that each rank reduces in a collective, and its reduction.

// The share of a rank in `count` elements: [first, second). Shares begin at cache-line boundaries, so that two ranks
// never write to the same cache line.
std::pair<int64_t, int64_t> share_of(int rank, int size, int64_t count, DType dtype);
// Reduces the share of `rank` over all ranks' elements, in rank order, and writes it to all of them. Measures the
// elements on the way if `sums` is given and taken().
void reduce_share(int rank, std::span<void* const> ranks, int64_t count, DType dtype, ReduceOp op,
                  const SlotSums* sums = nullptr);

}  // namespace brigade::dist::shm
