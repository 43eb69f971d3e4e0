// Shares of equal numbers of cache lines.
#include <brigade/dist/groups/shm/share.h>

#include <algorithm>

namespace brigade::dist::shm {

std::pair<int64_t, int64_t> share_of(int rank, int size, int64_t count, DType dtype) {
  const int64_t cache_line = 64 / static_cast<int64_t>(itemsize(dtype));
  const int64_t cache_lines = (count + cache_line - 1) / cache_line;
  return {std::min(count, cache_lines * rank / size * cache_line),
          std::min(count, cache_lines * (rank + 1) / size * cache_line)};
}

void reduce_share(int rank, std::span<void* const> ranks, int64_t count, DType dtype, ReduceOp op) {
  const auto [begin, end] = share_of(rank, static_cast<int>(ranks.size()), count, dtype);
  if (begin < end) reduce_elements(ranks, ranks, dtype, op, begin, end);
}

}  // namespace brigade::dist::shm
