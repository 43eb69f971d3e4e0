// Groups of some ranks of a group, with traffic of their own: pairs of ranks that average among
// themselves, leaders of hosts, stages of a pipeline.
//
//   const auto low = dist::new_group(group, {0, 1});
//   const auto high = dist::new_group(group, {2, 3});
//   const auto& mine = group->rank() < 2 ? low : high;
//   dist::DistributedDataParallel ddp(net, mine);
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <chrono>
#include <optional>
#include <vector>

namespace brigade::dist {

struct NewGroupOptions {
  // Of every collective of the new group, and for its ranks to meet. Without it that of `group`.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
};

// Collective over `group`, also for ranks that are not on the list: all give the same one. Ranks of
// the new group are numbered from 0 in the order of their numbers in `group`, whatever the order of
// the list, as in PyTorch. The new group has the backend of `group` and outlives it. A rank that is
// not on the list gets a group that it is no member of: its rank() and size() are -1, and every collective on it
// throws DistError that says so.
//
// All of these are thrown on every rank alike, and `group` goes on after them: CollectiveError for
// lists or time-outs that differ, with the lines of both ranks; ValueError for a list that is empty,
// has a rank twice or one that `group` does not have, and for a time-out that is not above 0.
// TimeoutError names ranks that did not come, PeerError those that are gone.
ProcessGroupPtr new_group(const ProcessGroupPtr& group, std::vector<int> ranks, const NewGroupOptions& options = {},
                          SourceLocation where = SourceLocation::current());

// --- As PyTorch's functions. Global ranks are those of the group from which groups were made first
// (of init_process_group or run_threads). All throw ValueError for a null group.

// Of this process in the group, and how many there are; -1 where it is no member.
int get_rank(const ProcessGroupPtr& group, SourceLocation where = SourceLocation::current());
int get_world_size(const ProcessGroupPtr& group, SourceLocation where = SourceLocation::current());
// The global ranks of its members, ascending.
std::vector<int> get_process_group_ranks(const ProcessGroupPtr& group,
                                         SourceLocation where = SourceLocation::current());
// Throw ValueError for a rank that the group does not have.
int get_global_rank(const ProcessGroupPtr& group, int group_rank, SourceLocation where = SourceLocation::current());
int get_group_rank(const ProcessGroupPtr& group, int global_rank, SourceLocation where = SourceLocation::current());

}  // namespace brigade::dist
