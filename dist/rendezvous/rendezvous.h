// How the ranks of a run meet: the store that an init_method names, waiting in it, and who shares a host.
#pragma once

#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/rendezvous/launch/environment.h>
#include <brigade/dist/rendezvous/store.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

// --- Opens the store that an init_method names, in which the ranks of a run meet.

// `method`: "env://" (see find_meeting_place), "tcp://HOST:PORT", "file:///PATH", or "alone://" (a world of one: a free
// port on the loopback interface). Over TCP rank 0 hosts the server, unless the launcher does. Throws DistError for
// another method, and the errors of the stores: TimeoutError when no server answers in time.
std::shared_ptr<Store> open_store(const std::string& method, const Variables& variables, const LaunchedRank& launched,
                                  std::chrono::milliseconds timeout);

// --- Waits in a store for other ranks to join a rendezvous. A wait ends before its timeout when the launchers report
// that the other rank will not join. The error names the rank at fault, not one that is itself waiting; so does the
// error file of this rank, from which the launcher finds the first failure.

// --- Store keys that launchers set for the ranks of one attempt to run the job (the ranks'
// TORCHELASTIC_RESTART_COUNT).

// Set when a node has failed, so that its ranks are restarted or never join: a line for the launchers, then a text that
// names the node and the reason.
std::string attempt_over_key(int attempt);
// Set when the process of `rank` (a global rank) has ended: a text that describes how.
std::string rank_ended_key(int attempt, int rank);

class AwaitedRanks {
 public:
  // For rank `rank` of `size`, which meets the others under `prefix`; all arguments must outlive this object.
  AwaitedRanks(Store& store, std::string prefix, int rank, int size, std::chrono::milliseconds timeout,
               const RankNames& names)
      : store_(store), prefix_(std::move(prefix)), rank_(rank), size_(size), timeout_(timeout), names_(names) {}
  ~AwaitedRanks();
  AwaitedRanks(const AwaitedRanks&) = delete;
  AwaitedRanks& operator=(const AwaitedRanks&) = delete;

  // Waits up to the timeout for the value that rank `other` sets. Throws the errors of look() and did_not_come().
  std::string get(const std::string& key, int other);

  // For a caller that waits for rank `other` by other means: call it repeatedly, at most once per kBetweenLooks. Throws
  // PeerError when the process of `other` has ended, or this attempt is over.
  void look(int other);
  // Throws TimeoutError; `remark` is appended to its text.
  [[noreturn]] void did_not_come(int other, const std::string& remark = "");

  static constexpr std::chrono::milliseconds kBetweenLooks{100};

 private:
  std::string waits_key(int global_rank) const;
  void say_for_whom(int global_rank) noexcept;
  // The global rank at fault: `other`, or, if it waits itself, the rank at the end of its chain of waits.
  int at_fault(int other);
  std::string because_of(int other, int fault) const;
  std::string global_name(int rank) const;

  Store& store_;
  const std::string prefix_;
  const int rank_, size_;
  const std::chrono::milliseconds timeout_;
  const RankNames& names_;
  int said_ = -1;         // the rank that this rank waits for, as published
  bool gave_up_ = false;  // the published rank is kept, since others may still read it
};

// --- Finds which ranks share a host, through the store.

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
