// Many indices are checked in one loop without branches; the bad one is looked for afterwards.
#include <brigade/core/index_error.h>

namespace brigade {

std::string index_error_text(const IndexRole& role, int64_t index, int64_t position, int64_t count) {
  return std::string(role.op) + ": " + role.index + " " + std::to_string(index) + " at position " +
         std::to_string(position) + " is not a " + role.what + " 0.." + std::to_string(count - 1);
}

void check_indices(const IndexRole& role, const int64_t* indices, int64_t length, int64_t count) {
  // Without a branch in the loop it takes vectors; which one is bad is looked for only when one is.
  bool all_good = true;
  for (int64_t i = 0; i < length; ++i)
    all_good &= static_cast<uint64_t>(indices[i]) < static_cast<uint64_t>(count);
  if (all_good) return;
  for (int64_t i = 0; i < length; ++i) {
    if (indices[i] < 0 || indices[i] >= count) throw IndexError(index_error_text(role, indices[i], i, count));
  }
}

}  // namespace brigade
