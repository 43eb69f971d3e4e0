// The share of elements that each rank reduces in a collective, and its reduction.
#pragma once

#include <brigade/dist/groups/arithmetic.h>

#include <cstdint>
#include <span>
#include <utility>

namespace brigade::dist::shm {

// The share of a rank in `count` elements: [first, second). Shares begin at cache-line boundaries, so that two ranks
// never write to the same cache line.
std::pair<int64_t, int64_t> share_of(int rank, int size, int64_t count, DType dtype);
// Reduces the share of `rank` over all ranks' elements, in rank order, and writes it to all of them. Measures the
// elements on the way if `sums` is given and taken().
void reduce_share(int rank, std::span<void* const> ranks, int64_t count, DType dtype, ReduceOp op,
                  const SlotSums* sums = nullptr);

}  // namespace brigade::dist::shm
