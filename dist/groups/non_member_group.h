// What a rank gets of a group that it is no member of (PyTorch: GroupMember.NON_GROUP_MEMBER).
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/subgroup.h>

namespace brigade::dist {

// Its rank() and its size() are -1, so that nobody takes it for a group of one. Every collective, and allocate(), throws
// DistError that names the rank, the members and the line at which the group was made.
ProcessGroupPtr make_non_member_group(const ProcessGroup& parent, const Subgroup& members);

}  // namespace brigade::dist
