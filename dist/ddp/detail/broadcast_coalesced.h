// Many tensors of one rank copied to the others in few collectives.
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/work.h>

#include <functional>
#include <string_view>
#include <vector>

namespace brigade::dist {

// Of the i-th of the tensors: whether nothing has written to it on this rank since all ranks last held the same.
using IsUnwritten = std::function<bool(size_t i)>;

// Copies the tensors from the root: they are packed into flat chunks of up to 25 MiB, each of one device. A tensor that
// holds the root's bytes already is not written, so its version does not move. On a device that the group reaches nothing
// waits to look at them: there all are written, and count as that but for those that are unwritten, whose bytes are the
// root's unless the root alone has changed them. Collective; the same tensors on every rank.
void broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor>& tensors, int root, const Topic& topic,
                         SourceLocation where = SourceLocation::current(), const IsUnwritten& is_unwritten = {});

// The same, begun: the root's bytes are taken now; on the other ranks a tensor is written when its
// Work is waited for. In this order.
std::vector<WorkPtr> begin_broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor>& tensors, int root,
                                               const Topic& topic, SourceLocation where = SourceLocation::current());

}  // namespace brigade::dist
