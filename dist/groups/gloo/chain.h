// Runs a Chain over Gloo.
//
// Partial sums travel from hop to hop in pieces, and results travel from the last hop back through all other ranks.
// When each rank has one hop, a rank receives and sends the tensor's bytes once in each direction: nearly as much as in
// a ring, in the order of the hops. All links are busy at the same time, since the pieces are pipelined.
#pragma once

#include <brigade/dist/groups/chain.h>
#include <brigade/dist/groups/gloo/messages.h>

namespace brigade::dist {

// The tensor must have at least one element.
void run_chain(const Messages& messages, const Chain& chain, const Tensor& tensor);

}  // namespace brigade::dist
