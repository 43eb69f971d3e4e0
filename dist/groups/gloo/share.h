// Messages over Gloo that hand bytes on as they are. Unlike Gloo's own broadcast, all-gather and barrier these know at every
// moment for which peer they wait, so that one that dies in the middle of a message ends the wait (Waiting).
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/groups/gloo/messages.h>

namespace brigade::dist {

// From `root` to all, in place, along a binomial tree: about log2(ranks) hops. Long tensors go in pieces, which a rank hands
// on as they come.
void broadcast_along_tree(const Messages& messages, const Tensor& tensor, int root);

// `output` gets the `input` of every rank, in rank order: each rank sends its own to every other one. `input` may be this
// rank's place in `output`.
void gather_everywhere(const Messages& messages, const Tensor& output, const Tensor& input);

// Returns when all ranks have come, after ceil(log2(ranks)) steps: in each, word of twice as many ranks goes round
// (Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", 1988).
void meet(const Messages& messages);

}  // namespace brigade::dist
