// Copies many tensors of one rank to the others in few collectives.
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/work.h>

#include <functional>
#include <vector>

namespace brigade::dist {

// Whether nothing has written to tensor i on this rank since all ranks last held the same values.
using IsUnwritten = std::function<bool(size_t i)>;

// Copies the tensors from the root, packed into flat chunks of up to 25 MiB, each of one device. A tensor that
// already holds the root's bytes is not written, so its version does not change. On a device that the group reaches,
// the tensors are not compared, since that would wait: all are written, and all count as written except the unwritten
// ones, whose bytes equal the root's unless only the root has changed them. Collective; the same tensors on every
// rank.
void broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor>& tensors, int root, const Topic& topic,
                         SourceLocation where = SourceLocation::current(), const IsUnwritten& is_unwritten = {});

// Starts the same copy: the root's bytes are taken now; on the other ranks a tensor is written when its Work is
// waited for. Wait in the order of the result.
std::vector<WorkPtr> begin_broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor>& tensors, int root,
                                               const Topic& topic, SourceLocation where = SourceLocation::current());

}  // namespace brigade::dist
