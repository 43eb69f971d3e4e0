// A Gloo context over existing connections. Gloo's own connectFullMesh opens one listener per peer, and takes the first
// connection for that peer, from any process.
#pragma once

#include <brigade/dist/rendezvous/store/socket.h>

#include <gloo/context.h>

#include <chrono>
#include <memory>
#include <vector>

namespace brigade::dist {

class JoinedContext final : public gloo::Context {
 public:
  // `connections`: indexed by rank, none to this rank itself. `timeout` applies to calls. Throws Gloo's exceptions, and
  // DistError.
  JoinedContext(int rank, std::vector<Socket> connections, std::chrono::milliseconds timeout);

  // Ends all waits in the context, on this rank and on its peers. Gloo has no call for this: closing a pair notifies
  // the peer, but waits on this side continue until the timeout. At end of stream, however, Gloo wakes most waits (see
  // Waiting), so this shuts the sockets down. May be called from any thread.
  void break_connections() noexcept;
  // Whether the connection to `peer` is closed and everything received is read. May be called from any thread.
  bool is_gone(int peer) const noexcept;

 private:
  std::vector<Socket> connections_;  // duplicates of the pairs' descriptors
};

}  // namespace brigade::dist
