// Broadcast, all-gather and barrier over Gloo's messages. Gloo has its own, but those do not say for which peer they wait:
// a peer that dies in the middle of a message would not end the wait (Waiting).
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/groups/gloo/messages.h>

namespace brigade::dist {

// From `root` to all, in place, along a binomial tree: about log2(ranks) hops. Long tensors go in pieces, which a rank hands
// on as they come.
void tree_broadcast(const Messages& messages, const Tensor& tensor, int root);

// `output` gets the `input` of every rank, in rank order: each rank sends its own to every other one. `input` may be this
// rank's place in `output`.
void direct_all_gather(const Messages& messages, const Tensor& output, const Tensor& input);

// Returns when all ranks have come, after ceil(log2(ranks)) steps: after each, a rank has heard of twice as many
// (Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", 1988).
void dissemination_barrier(const Messages& messages);

}  // namespace brigade::dist
