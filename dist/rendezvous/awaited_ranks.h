// Waiting in a store for other ranks to join a meeting. A wait ends before its time-out when the
// launchers report that the other rank will not join. The error names the rank at fault, not one that
// is itself waiting; so does the error file of this rank, from which the launcher finds who was first.
#pragma once

#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/rendezvous/store.h>

#include <chrono>
#include <string>
#include <utility>

namespace brigade::dist {

// --- What launchers put into the store for the ranks of one attempt to run the job
// (TORCHELASTIC_RESTART_COUNT of these ranks).

// There when a node has failed, so that its ranks are started again or never come: a line for the
// launchers, then in words which node and why.
std::string attempt_over_key(int attempt);
// There when the process of that rank (a global one) has ended: how, in words.
std::string rank_ended_key(int attempt, int rank);

class AwaitedRanks {
 public:
  // For rank `rank` of `size`, which meets the others below `prefix`; everything outlives this.
  AwaitedRanks(Store& store, std::string prefix, int rank, int size, std::chrono::milliseconds timeout,
               const RankNames& names)
      : store_(store), prefix_(std::move(prefix)), rank_(rank), size_(size), timeout_(timeout), names_(names) {}
  ~AwaitedRanks();
  AwaitedRanks(const AwaitedRanks&) = delete;
  AwaitedRanks& operator=(const AwaitedRanks&) = delete;

  // Waits for what rank `other` puts there, for the whole time-out. Throws what look() and
  // did_not_come() throw.
  std::string get(const std::string& key, int other);

  // For who waits for rank `other` by other means; to be called again and again, not more often than
  // each kBetweenLooks. Throws PeerError where its process has ended, or this attempt is over.
  void look(int other);
  // Throws TimeoutError. `remark` ends its text.
  [[noreturn]] void did_not_come(int other, const std::string& remark = "");

  static constexpr std::chrono::milliseconds kBetweenLooks{100};

 private:
  std::string waits_key(int global_rank) const;
  void say_for_whom(int global_rank) noexcept;
  // Where rank `other` waits for another rank: that one, or the one for which that one waits. Global.
  int at_fault(int other);
  std::string because_of(int other, int fault) const;
  std::string global_name(int rank) const;

  Store& store_;
  const std::string prefix_;
  const int rank_, size_;
  const std::chrono::milliseconds timeout_;
  const RankNames& names_;
  int said_ = -1;         // for whom this rank waits, as the others know
  bool gave_up_ = false;  // others may still ask for whom it waited
};

}  // namespace brigade::dist
