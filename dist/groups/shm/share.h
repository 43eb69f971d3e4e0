// Which elements of a collective each rank reduces.
#pragma once

#include <brigade/core/dtype.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace brigade::dist::shm {

// Of `count` elements those of a rank: [first, second). Shares begin on cache lines, so that two ranks write to no cache line in common.
inline std::pair<int64_t, int64_t> share_of(int rank, int size, int64_t count, DType dtype) {
  const int64_t cache_line = 64 / static_cast<int64_t>(itemsize(dtype));
  const int64_t cache_lines = (count + cache_line - 1) / cache_line;
  return {std::min(count, cache_lines * rank / size * cache_line),
          std::min(count, cache_lines * (rank + 1) / size * cache_line)};
}

}  // namespace brigade::dist::shm
