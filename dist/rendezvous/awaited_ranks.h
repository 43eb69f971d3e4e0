// Waits in a store for other ranks to join a rendezvous. A wait ends before its timeout when the launchers report that
// the other rank will not join. The error names the rank at fault, not one that is itself waiting; so does the error
// file of this rank, from which the launcher finds the first failure.
#pragma once

#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/rendezvous/store.h>

#include <chrono>
#include <string>
#include <utility>

namespace brigade::dist {

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

}  // namespace brigade::dist
