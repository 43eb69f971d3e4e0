// Which ranks stand against most.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace brigade::dist {

// The ranks that do not hold what most hold; on a tie, what rank 0 holds. `values`: one for each rank.
template <class Values>
std::vector<int> odd_ranks(const Values& values) {
  const auto count = [&](const auto& value) { return std::count(values.begin(), values.end(), value); };
  size_t usual = 0;
  for (size_t r = 1; r < values.size(); ++r) {
    if (count(values[r]) > count(values[usual])) usual = r;
  }
  std::vector<int> odd;
  for (size_t r = 0; r < values.size(); ++r) {
    if (!(values[r] == values[usual])) odd.push_back(static_cast<int>(r));
  }
  return odd;
}

}  // namespace brigade::dist
