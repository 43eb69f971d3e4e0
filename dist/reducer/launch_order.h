// The rounds of one backward, in the order in which they send.
//
// Where a backward runs through several wrappers of one group, the order in which buckets become full
// depends on what a rank reaches: a bucket for which no gradient comes is full at once. So the wrapper
// whose forward began last sends all of its buckets first, then the one before. Gradients come in that
// order anyway.
#pragma once

#include <cstdint>
#include <vector>

namespace brigade::dist {

class ProcessGroup;
class Round;

class LaunchOrder {
 public:
  // Of the backward that runs on this thread.
  static LaunchOrder& of_this_thread() noexcept;

  // `forward`: larger for one that began later. Until remove().
  void add(Round& round, const ProcessGroup& group, uint64_t forward);
  void remove(const Round& round) noexcept;
  // Sends the buckets that are full and whose turn it is. May throw.
  void advance(const Round& round) const;
  // All nodes have run: sends all buckets. May throw.
  void send_rest(const Round& round) const;
  // The backward has failed, for all of them.
  void fail() const noexcept;

 private:
  struct Entry {
    Round* round;
    const ProcessGroup* group;
    uint64_t forward;
  };
  const ProcessGroup* group_of(const Round& round) const noexcept;

  std::vector<Entry> entries_;  // the first to send first
};

}  // namespace brigade::dist
