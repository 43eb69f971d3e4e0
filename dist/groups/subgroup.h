// Describes a subgroup that the ranks of a process group have agreed on, before it is made.
#pragma once

#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/groups/process_group.h>

#include <chrono>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

namespace brigade::dist {

struct Subgroup {
  std::vector<int> ranks;  // in the parent group, ascending
  int rank = -1;           // of this process in the subgroup; -1: not a member
  std::chrono::milliseconds timeout{0};
  RankNames names;
  std::source_location where = {};  // the call's line
  uint64_t number = 0;              // identifies the subgroup in its parent; the same on all ranks

  int size() const noexcept { return static_cast<int>(ranks.size()); }
  bool is_member() const noexcept { return rank >= 0; }
};

// The store prefix under which the subgroup's ranks meet.
inline std::string prefix_of(const std::string& parent, const Subgroup& members) {
  return parent + "/subgroup" + std::to_string(members.number);
}

// --- The group that a rank gets when it is not a member (PyTorch: GroupMember.NON_GROUP_MEMBER).

// Its rank() and size() are -1, so that it is not mistaken for a group of one. Every collective, and allocate(), throws
// DistError that names the rank, the members and the line that made the group.
ProcessGroupPtr make_non_member_group(const ProcessGroup& parent, const Subgroup& members);

}  // namespace brigade::dist
