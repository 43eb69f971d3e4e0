// Finds which ranks share a host, through the store.
#pragma once

#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/rendezvous/store.h>

#include <string>
#include <vector>

namespace brigade::dist {

// A text that is equal exactly for processes that can share memory: the machine's boot id, and the namespaces that
// ranks must share to watch each other's processes (pid), connect over a local socket (net) and know each other's user
// (user). BRIGADE_HOST_ID, when set, is appended: ranks of one machine with different values count as different hosts
// (for tests); it cannot merge two hosts. Throws DistError when it is not a plain word.
std::string host_identity();

struct HostLayout {
  // The ranks of each host, ascending; hosts in the order of their lowest rank. The first rank of a
  // host is its leader.
  std::vector<std::vector<int>> hosts;
  int host = 0;   // the host of this rank
  int local = 0;  // index of this rank on its host

  // Whether all hosts have the same number of ranks.
  bool even() const noexcept;
  size_t most_ranks() const noexcept;
};

// Throws TimeoutError that names a rank which did not arrive, PeerError for one that is gone. `words`: in, one word of
// this rank; out, the words of all ranks.
HostLayout exchange_hosts(Store& store, int rank, int size, std::chrono::milliseconds timeout,
                          const std::string& prefix, const RankNames& names = {},
                          std::vector<std::string>* words = nullptr);

}  // namespace brigade::dist
