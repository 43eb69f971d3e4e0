// Shares of equal numbers of cache lines.
#include <brigade/dist/groups/shm/share.h>

#include <brigade/dist/groups/slot_sums.h>

#include <algorithm>

namespace brigade::dist::shm {

std::pair<int64_t, int64_t> share_of(int rank, int size, int64_t count, DType dtype) {
  const int64_t cache_line = 64 / static_cast<int64_t>(itemsize(dtype));
  const int64_t cache_lines = (count + cache_line - 1) / cache_line;
  return {std::min(count, cache_lines * rank / size * cache_line),
          std::min(count, cache_lines * (rank + 1) / size * cache_line)};
}

void reduce_share(int rank, std::span<void* const> ranks, int64_t count, DType dtype, ReduceOp op,
                  const SlotSums* sums) {
  const auto [begin, end] = share_of(rank, static_cast<int>(ranks.size()), count, dtype);
  if (begin >= end) return;
  if (!sums || !sums->taken()) return reduce_elements(ranks, ranks, dtype, op, begin, end);
  // What is measured is still in the first-level cache when it is reduced.
  constexpr int64_t kBlockBytes = 16 << 10;
  const int64_t block = kBlockBytes / static_cast<int64_t>(itemsize(dtype));
  SlotSums::Measuring measuring(*sums, ranks, begin);
  for (int64_t at = begin; at < end; at += block) {
    const int64_t next = std::min(end, at + block);
    measuring.go_on(next);
    reduce_elements(ranks, ranks, dtype, op, at, next);
  }
  measuring.finish();
}

}  // namespace brigade::dist::shm
