// The ranks of a group agree on a list before the listed ranks form a group.
#include <brigade/dist/groups/new_group.h>

#include <brigade/core/error.h>
#include <brigade/dist/errors/wire.h>
#include <brigade/dist/groups/collective_errors.h>
#include <brigade/dist/groups/subgroup.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

namespace brigade::dist {
namespace {

constexpr const char* kKind = "new_group";

const ProcessGroup& checked(const ProcessGroupPtr& group, const char* what, SourceLocation where) {
  if (!group) throw ValueError(where, "{}: the process group is empty; see init_process_group", what);
  return *group;
}

// Compares the requests of all ranks. Throws CollectiveError when they differ.
void compare(ProcessGroup& group, const CollectiveInfo& own, SourceLocation where) {
  std::vector<RankStatus> by_rank;
  for (const std::string& text : group.all_gather_text(to_text(own), kKind, where)) {
    const int rank = static_cast<int>(by_rank.size());
    by_rank.push_back({.rank = group.names()(rank), .last = decoded<CollectiveInfo>(text)});
  }
  const bool same =
      std::ranges::all_of(by_rank, [&](const RankStatus& each) { return each.last.matches(by_rank.front().last); });
  if (!same) throw mismatch_error(by_rank, group.flight_recorder(), group.names());
}

// Called after all ranks have given the same list, so that all of them throw.
void check(const ProcessGroup& group, const Subgroup& members, SourceLocation where) {
  const std::string list = fmt::format("{}", fmt::join(members.ranks, ", "));
  if (members.ranks.empty()) throw ValueError(where, "new_group: expected at least one rank, got none");
  if (members.ranks.front() < 0 || members.ranks.back() >= group.size())
    throw ValueError(where, "new_group: expected ranks of the group, 0 to {}, got {}", group.size() - 1, list);
  if (std::ranges::adjacent_find(members.ranks) != members.ranks.end())
    throw ValueError(where, "new_group: expected each rank once, got {}", list);
  if (members.timeout.count() <= 0)
    throw ValueError(where, "new_group: expected a time-out above 0, got {} ms", members.timeout.count());
}

}  // namespace

ProcessGroupPtr new_group(const ProcessGroupPtr& group, std::vector<int> ranks, const NewGroupOptions& options,
                          SourceLocation where) {
  checked(group, kKind, where);
  std::ranges::sort(ranks);
  Subgroup members{.ranks = std::move(ranks), .timeout = options.timeout.value_or(group->timeout()), .where = where};
  CollectiveInfo wanted;
  wanted.kind = CollectiveKind::NewGroup;
  wanted.text = fmt::format("ranks {}; time-out {} ms", fmt::join(members.ranks, ", "), members.timeout.count());
  wanted.where = where;
  compare(*group, wanted, where);
  check(*group, members, where);
  const auto own = std::ranges::find(members.ranks, group->rank());
  if (own != members.ranks.end()) members.rank = static_cast<int>(own - members.ranks.begin());
  members.number = group->flight_recorder().entries().back().sequence;
  members.names = group->names().subgroup(members.ranks, members.number);
  ProcessGroupPtr made = group->make_subgroup(members);
  return members.is_member() ? made : make_non_member_group(*group, members);
}

int get_rank(const ProcessGroupPtr& group, SourceLocation where) { return checked(group, "get_rank", where).rank(); }

int get_world_size(const ProcessGroupPtr& group, SourceLocation where) {
  return checked(group, "get_world_size", where).size();
}

std::vector<int> get_process_group_ranks(const ProcessGroupPtr& group, SourceLocation where) {
  const ProcessGroup& given = checked(group, "get_process_group_ranks", where);
  return given.names().globals(given.size());
}

int get_global_rank(const ProcessGroupPtr& group, int group_rank, SourceLocation where) {
  checked(group, "get_global_rank", where);
  const std::vector<int> ranks = get_process_group_ranks(group);
  if (group_rank < 0 || group_rank >= static_cast<int>(ranks.size()))
    throw ValueError(where, "get_global_rank: expected a rank of the group, 0 to {}, got {}", ranks.size() - 1,
                     group_rank);
  return ranks[static_cast<size_t>(group_rank)];
}

int get_group_rank(const ProcessGroupPtr& group, int global_rank, SourceLocation where) {
  checked(group, "get_group_rank", where);
  const std::vector<int> ranks = get_process_group_ranks(group);
  const auto found = std::ranges::find(ranks, global_rank);
  if (found == ranks.end())
    throw ValueError(where, "get_group_rank: global rank {} is not part of the group of global ranks {}", global_rank,
                     fmt::format("{}", fmt::join(ranks, ", ")));
  return static_cast<int>(found - ranks.begin());
}

}  // namespace brigade::dist
