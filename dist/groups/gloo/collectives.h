// Broadcast, all-gather and barrier over Gloo's messages. Gloo's own collectives do not expose which peer they wait
// for, so a peer that dies in the middle of a message would not end the wait (Waiting).
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/groups/gloo/messages.h>

namespace brigade::dist {

// Broadcasts from `root`, in place, along a binomial tree: about log2(ranks) hops. Long tensors are sent in pieces,
// which a rank forwards as they arrive.
void tree_broadcast(const Messages& messages, const Tensor& tensor, int root);

// `output` gets the `input` of every rank, in rank order: each rank sends its input to every other rank. `input` may be
// this rank's place in `output`.
void direct_all_gather(const Messages& messages, const Tensor& output, const Tensor& input);

// Returns when all ranks have arrived, after ceil(log2(ranks)) steps: each step doubles the number of ranks that a rank
// has heard from (Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", 1988).
void dissemination_barrier(const Messages& messages);

}  // namespace brigade::dist
