// Which ranks share a host: the ranks tell each other through the store.
#pragma once

#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/rendezvous/store.h>

#include <string>
#include <vector>

namespace brigade::dist {

// The same text for processes that can share memory, another on every other host: the machine's
// boot, and the namespaces without which ranks cannot watch each other's processes (pid), meet at a
// local socket (net) and know each other's user (user). BRIGADE_HOST_ID, when set, is added to it: ranks of one machine
// with different values count as different hosts (for tests); it cannot make two hosts one. Throws
// DistError when it is not a plain word.
std::string host_identity();

struct HostLayout {
  // The ranks of each host, ascending; hosts in the order of their lowest rank. The first rank of a
  // host is its leader.
  std::vector<std::vector<int>> hosts;
  int host = 0;   // of this rank
  int local = 0;  // this rank's place on it

  // All hosts have the same number of ranks.
  bool even() const noexcept;
  size_t most_ranks() const noexcept;
};

// Throws TimeoutError that names a rank which did not come, PeerError for one that is gone.
// `words`: one of this rank, which becomes those of all ranks.
HostLayout exchange_hosts(Store& store, int rank, int size, std::chrono::milliseconds timeout,
                          const std::string& prefix, const RankNames& names = {},
                          std::vector<std::string>* words = nullptr);

}  // namespace brigade::dist
