// Connects the ranks of a Gloo group, which find each other through the store and use the network interface that leads
// to it.
#pragma once

#include <brigade/dist/errors/rank_names.h>

#include <chrono>
#include <memory>
#include <string>

namespace brigade::dist {

class JoinedContext;
class Store;

// Connects all pairs of ranks; `timeout` then applies to the calls of the context. The interface is given by
// BRIGADE_SOCKET_IFNAME, else by GLOO_SOCKET_IFNAME, else it is the one that leads to the store. Throws TimeoutError
// when a rank does not arrive, and DistError that names the interface when it cannot be used.
std::shared_ptr<JoinedContext> connect_gloo(const std::shared_ptr<Store>& store, const std::string& prefix, int rank,
                                            int size, std::chrono::milliseconds timeout, const RankNames& names);

}  // namespace brigade::dist
