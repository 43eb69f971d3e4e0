// Subgroups: groups of some ranks of a group, with separate traffic, such as pairs of ranks that average among
// themselves, leaders of hosts, or stages of a pipeline.
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
  // For every collective of the new group, and for its ranks to meet. Default: the timeout of `group`.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
};

// Collective over `group`: every rank must call it with the same list, also ranks that are not on it. Ranks of the new
// group are numbered from 0 in the order of their ranks in `group`, whatever the order of the list, as in PyTorch. The
// new group has the backend of `group` and may outlive it. A rank that is not on the list gets a non-member group: its
// rank() and size() are -1, and every collective on it throws DistError.
//
// The following are thrown on every rank, and `group` stays usable after them: CollectiveError when lists or timeouts
// differ, with the lines of both ranks; ValueError for a list that is empty, contains a rank twice or contains a rank
// that `group` does not have, and for a timeout that is not positive. TimeoutError names the ranks that did not arrive,
// PeerError the ranks that are gone.
ProcessGroupPtr new_group(const ProcessGroupPtr& group, std::vector<int> ranks, const NewGroupOptions& options = {},
                          SourceLocation where = SourceLocation::current());

// --- Equivalents of PyTorch's functions. Global ranks are those of the top-level group (from init_process_group or
// run_threads). All throw ValueError for a null group.

// The rank of this process in the group, and the number of ranks; -1 when it is not a member.
int get_rank(const ProcessGroupPtr& group, SourceLocation where = SourceLocation::current());
int get_world_size(const ProcessGroupPtr& group, SourceLocation where = SourceLocation::current());
// The global ranks of the group's members, ascending.
std::vector<int> get_process_group_ranks(const ProcessGroupPtr& group,
                                         SourceLocation where = SourceLocation::current());
// Throw ValueError for a rank that the group does not have.
int get_global_rank(const ProcessGroupPtr& group, int group_rank, SourceLocation where = SourceLocation::current());
int get_group_rank(const ProcessGroupPtr& group, int global_rank, SourceLocation where = SourceLocation::current());

}  // namespace brigade::dist
