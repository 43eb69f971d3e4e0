// The rounds of one backward, in sending order.
//
// If a backward runs through several wrappers of one group, the order in which buckets fill depends on the parameters
// that a rank reaches: a bucket that expects no gradient is full at once. Therefore the wrapper whose forward began
// last sends all of its buckets first, then the wrapper before it. Gradients arrive in that order anyway.
#pragma once

#include <cstdint>
#include <vector>

namespace brigade::dist {

class ProcessGroup;
class Round;

class LaunchOrder {
 public:
  // The order for the backward that runs on this thread.
  static LaunchOrder& of_this_thread() noexcept;

  // Adds a round until remove(). `forward`: larger for a forward that began later.
  void add(Round& round, const ProcessGroup& group, uint64_t forward);
  void remove(const Round& round) noexcept;
  bool is_single() const noexcept { return entries_.size() == 1; }
  // Sends the full buckets whose turn it is. May throw.
  void advance(const Round& round) const;
  // Called when all nodes have run: sends all buckets. May throw.
  void send_rest(const Round& round) const;
  // Called when the backward has failed: fails all rounds.
  void fail() const noexcept;

 private:
  struct Entry {
    Round* round;
    const ProcessGroup* group;
    uint64_t forward;
  };
  const ProcessGroup* group_of(const Round& round) const noexcept;

  std::vector<Entry> entries_;  // first sender first
};

}  // namespace brigade::dist
