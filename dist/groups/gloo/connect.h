// How the ranks of a Gloo group connect: authenticated connections between all pairs, and a context over them.
#pragma once

#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/rendezvous/store/socket.h>

#include <gloo/context.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace brigade::dist {

// --- Authenticated TCP connections between all pairs of ranks of a group.
//
//   1. Each rank listens, and publishes its address and a nonce in the store.
//   2. It connects to all lower ranks, and sends each that rank's nonce and its own rank.
//   3. It accepts all higher ranks, and answers each with that rank's nonce.
//
// So both sides prove that they can read the store. A connection that sends anything else is closed, and a silent one
// is not waited for; when all ranks have arrived, the listener is closed. Later traffic is not encrypted.

class Store;

// A peer cannot be reached at its published address.
struct UnreachablePeer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns the connections indexed by rank, with none to this rank itself. `address`: numeric address at which this rank
// listens and the others can reach it. `prefix`: of the store keys. Throws TimeoutError that names a rank which did not
// arrive, and UnreachablePeer.
std::vector<Socket> connect_mesh(Store& store, const std::string& prefix, const std::string& address, int rank,
                                 int size, std::chrono::milliseconds timeout, const RankNames& names);

// --- A Gloo context over existing connections. Gloo's own connectFullMesh opens one listener per peer, and takes the
// first connection for that peer, from any process.

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

// --- Connects the ranks of a Gloo group, which find each other through the store and use the network interface that
// leads to it.

class JoinedContext;
class Store;

// Connects all pairs of ranks; `timeout` then applies to the calls of the context. The interface is given by
// BRIGADE_SOCKET_IFNAME, else by GLOO_SOCKET_IFNAME, else it is the one that leads to the store. Throws TimeoutError
// when a rank does not arrive, and DistError that names the interface when it cannot be used.
std::shared_ptr<JoinedContext> connect_gloo(const std::shared_ptr<Store>& store, const std::string& prefix, int rank,
                                            int size, std::chrono::milliseconds timeout, const RankNames& names);

}  // namespace brigade::dist
