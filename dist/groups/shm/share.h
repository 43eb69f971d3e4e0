// Which elements of a collective each rank reduces, and the reduction of these.
#pragma once

#include <brigade/dist/groups/arithmetic.h>

#include <cstdint>
#include <span>
#include <utility>

namespace brigade::dist::shm {

// Of `count` elements those of a rank: [first, second). Shares begin on cache lines, so that two ranks write to no
// cache line in common.
std::pair<int64_t, int64_t> share_of(int rank, int size, int64_t count, DType dtype);
// Combines the share of `rank` over all ranks' elements, in rank order, and writes it to all of them.
// `sums` that are taken: measures it on the way.
void reduce_share(int rank, std::span<void* const> ranks, int64_t count, DType dtype, ReduceOp op,
                  const SlotSums* sums = nullptr);

}  // namespace brigade::dist::shm
