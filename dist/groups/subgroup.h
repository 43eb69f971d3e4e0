// What the ranks of a process group have agreed on before some of them become a group of their own.
#pragma once

#include <brigade/dist/errors/rank_names.h>

#include <chrono>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

namespace brigade::dist {

struct Subgroup {
  std::vector<int> ranks;  // of the group that it is a part of, ascending
  int rank = -1;           // of this process among them; -1: it is no member
  std::chrono::milliseconds timeout{0};
  RankNames names;
  std::source_location where = {};  // of the call
  uint64_t number = 0;              // tells the subgroups of a group apart; the same on all ranks

  int size() const noexcept { return static_cast<int>(ranks.size()); }
  bool is_member() const noexcept { return rank >= 0; }
};

// Under which it meets in the store.
inline std::string prefix_of(const std::string& parent, const Subgroup& members) {
  return parent + "/subgroup" + std::to_string(members.number);
}

}  // namespace brigade::dist
