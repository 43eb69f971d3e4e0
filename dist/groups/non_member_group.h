// The group that a rank gets when it is not a member (PyTorch: GroupMember.NON_GROUP_MEMBER).
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/subgroup.h>

namespace brigade::dist {

// Its rank() and size() are -1, so that it is not mistaken for a group of one. Every collective, and allocate(), throws
// DistError that names the rank, the members and the line that made the group.
ProcessGroupPtr make_non_member_group(const ProcessGroup& parent, const Subgroup& members);

}  // namespace brigade::dist
