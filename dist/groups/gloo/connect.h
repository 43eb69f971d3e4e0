// How the ranks of a Gloo group find each other: through the store, over the network interface that
// leads to it.
#pragma once

#include <brigade/dist/errors/rank_names.h>

#include <chrono>
#include <memory>
#include <string>

namespace brigade::dist {

class JoinedContext;
class Store;

// Connects all ranks, each with each; the calls of the context then wait for `timeout`. The
// interface is that of BRIGADE_SOCKET_IFNAME, else of GLOO_SOCKET_IFNAME, else the one on the way
// to the store. Throws TimeoutError when a rank does not come, and DistError that names the
// interface when it cannot be used.
std::shared_ptr<JoinedContext> connect_gloo(const std::shared_ptr<Store>& store, const std::string& prefix, int rank,
                                            int size, std::chrono::milliseconds timeout, const RankNames& names);

}  // namespace brigade::dist
