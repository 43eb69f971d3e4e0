// The numbers by which errors call the ranks of a group. A group that is a part of a larger one
// (the ranks of one host, say) calls them by their numbers there, since users know no others.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace brigade::dist {

class RankNames {
 public:
  // Rank r is called r.
  RankNames() = default;
  // Rank r is called names[r].
  RankNames(std::vector<int> names) : names_(std::move(names)) {}  // NOLINT: a list of numbers is a RankNames
  // Whether ranks are called by their own numbers.
  bool own() const noexcept { return names_.empty(); }
  int operator()(int rank) const noexcept { return names_.empty() ? rank : names_[static_cast<size_t>(rank)]; }

 private:
  std::vector<int> names_;
};

}  // namespace brigade::dist
