// Authenticated TCP connections between all pairs of ranks of a group.
//
//   1. Each rank listens, and publishes its address and a nonce in the store.
//   2. It connects to all lower ranks, and sends each that rank's nonce and its own rank.
//   3. It accepts all higher ranks, and answers each with that rank's nonce.
//
// So both sides prove that they can read the store. A connection that sends anything else is closed, and a silent one
// is not waited for; when all ranks have arrived, the listener is closed. Later traffic is not encrypted.
#pragma once

#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/rendezvous/store/socket.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace brigade::dist {

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

}  // namespace brigade::dist
