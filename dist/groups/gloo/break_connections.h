// Ends whatever waits in a Gloo context, on this rank and at its peers.
#pragma once

#include <gloo/context.h>

namespace brigade::dist {

// Gloo has no call for this: closing a pair tells the peer, but who waits on this side goes on
// waiting until the time-out. At the end of a stream, however, Gloo wakes everybody; so the sockets
// are shut down. They are found among this process's descriptors by the pair's own address. A pair
// whose socket is not found is closed instead. May be called from any thread.
void break_connections(gloo::Context& context);

}  // namespace brigade::dist
