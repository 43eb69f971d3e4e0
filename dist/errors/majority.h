// Majority vote over ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace brigade::dist {

// The first rank that holds the most common value; on a tie, the lowest of these ranks. `values`: one for each rank.
template <class Values, class Same = std::equal_to<>>
size_t usual_rank(const Values& values, Same same = {}) {
  const auto count = [&](const auto& value) {
    return std::count_if(values.begin(), values.end(), [&](const auto& other) { return same(other, value); });
  };
  size_t usual = 0;
  for (size_t r = 1; r < values.size(); ++r) {
    if (count(values[r]) > count(values[usual])) usual = r;
  }
  return usual;
}

// The ranks whose values differ from that of usual_rank().
template <class Values, class Same = std::equal_to<>>
std::vector<int> odd_ranks(const Values& values, Same same = {}) {
  const size_t usual = usual_rank(values, same);
  std::vector<int> odd;
  for (size_t r = 0; r < values.size(); ++r) {
    if (!same(values[r], values[usual])) odd.push_back(static_cast<int>(r));
  }
  return odd;
}

// The odd ranks if they are outvoted by more than half of all ranks, else none: of two ranks, either may be wrong.
inline std::vector<int> outvoted(const std::vector<int>& odd, size_t ranks) {
  return 2 * odd.size() < ranks ? odd : std::vector<int>{};
}

}  // namespace brigade::dist
