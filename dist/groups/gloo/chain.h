// The messages of a Chain over Gloo.
//
// Partial sums go from hop to hop in pieces, and the results from the last hop back over all other
// ranks. Where each rank has one hop, a rank receives and sends the tensor's bytes once each way:
// (nearly) what a ring sends, in the order of the hops. All links are busy at the same time, since
// each piece is a step behind the one before.
#pragma once

#include <brigade/dist/groups/chain.h>
#include <brigade/dist/groups/gloo/messages.h>

namespace brigade::dist {

// Of at least one element.
void run_chain(const Messages& messages, const Chain& chain, const Tensor& tensor);

}  // namespace brigade::dist
