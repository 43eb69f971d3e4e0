// A Gloo context over connections that are there already. Gloo's own way (connectFullMesh) listens
// once per peer until that peer comes, and takes whoever comes first for it.
#pragma once

#include <brigade/dist/rendezvous/store/socket.h>

#include <gloo/context.h>

#include <chrono>
#include <memory>
#include <vector>

namespace brigade::dist {

class JoinedContext final : public gloo::Context {
 public:
  // `connections`: by rank, none to this rank itself. Calls wait for `timeout`. Throws what Gloo
  // throws, and DistError.
  JoinedContext(int rank, std::vector<Socket> connections, std::chrono::milliseconds timeout);

  // Ends whatever waits in it, on this rank and at its peers. Gloo has no call for this: closing a
  // pair tells the peer, but who waits on this side goes on waiting until the time-out. At the end
  // of a stream, however, Gloo wakes most of them (see Waiting); so the sockets are shut down. From any thread.
  void break_connections() noexcept;
  // Nothing comes from `peer` any more, and nothing goes there. From any thread.
  bool is_gone(int peer) const noexcept;

 private:
  std::vector<Socket> connections_;  // the same as the pairs'
};

}  // namespace brigade::dist
