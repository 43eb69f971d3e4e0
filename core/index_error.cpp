// Checks many indices in one loop without branches, and looks for the bad one afterwards.
#include <brigade/core/index_error.h>

namespace brigade {

IndexError index_error(const IndexRole& role, int64_t index, int64_t position, int64_t count) {
  return IndexError("{}: {} {} at position {} is not a {} 0..{}", role.op, role.index, index, position, role.what,
                    count - 1);
}

void check_indices(const IndexRole& role, const int64_t* indices, int64_t length, int64_t count) {
  // Without a branch the loop vectorizes; the bad index is looked for only if there is one.
  bool all_good = true;
  for (int64_t i = 0; i < length; ++i)
    all_good &= static_cast<uint64_t>(indices[i]) < static_cast<uint64_t>(count);
  if (all_good) return;
  for (int64_t i = 0; i < length; ++i) {
    if (indices[i] < 0 || indices[i] >= count) throw index_error(role, indices[i], i, count);
  }
}

}  // namespace brigade
