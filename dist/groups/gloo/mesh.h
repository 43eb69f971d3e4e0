// TCP connections between all ranks of a group, each with each, that nobody else can have.
//
//   1. Each rank listens, and tells the store where, with a nonce of its own.
//   2. It connects to the ranks before it, and says to each that rank's nonce and its own number.
//   3. It lets the ranks behind it in, and answers each with the nonce of that rank.
//
// So both sides have shown that they can read the store. Who connects and says something else is
// sent away, who says nothing is not waited for; when all ranks have come the listener is closed.
// What the ranks send afterwards is not encrypted.
#pragma once

#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/rendezvous/store/socket.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace brigade::dist {

class Store;

// A peer cannot be reached at the address that it has told.
struct UnreachablePeer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// By rank; none to this rank itself. `address`: numeric, where this rank listens and the others can
// reach it. `prefix`: of the keys in the store. Throws TimeoutError that names a rank which did not
// come, and UnreachablePeer.
std::vector<Socket> connect_mesh(Store& store, const std::string& prefix, const std::string& address, int rank,
                                 int size, std::chrono::milliseconds timeout, const RankNames& names);

}  // namespace brigade::dist
