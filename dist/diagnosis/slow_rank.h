// Finds a rank that is slow in backward, from times alone, for the advisory slow_rank.
//
// A rank is slow when its last gradient comes much later than the median of the others: by more
// than 12 ms (a delay that the scheduler may cause by chance) and by more than half of that median
// (ranks that take 100 and 115 ms are alike). It is worth a warning when the same rank is slow in
// four backwards in a row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace brigade::dist {

// Per parameter: microseconds from the start of a rank's backward to its gradient; negative if there was none.
using ReadyTimes = std::vector<int64_t>;

struct SlowRank {
  int rank = 0;
  int64_t last_us = 0;     // when its last gradient came
  int64_t others_us = 0;   // the median of those times of the other ranks
  uint32_t parameter = 0;  // the first, in ready order, at which it has lost half of the difference

  bool operator==(const SlowRank&) const = default;
};

// For one backward; `ranks`: one entry per rank, all of one length. Ranks without any gradient are left out.
std::optional<SlowRank> find_slow_rank(std::span<const ReadyTimes> ranks);

// Whether a backward with this mean and variance of the ranks' times, in ms, may have a slow rank:
// cheaper than exchanging the times themselves.
bool may_have_slow_rank(double mean_ms, double variance, int ranks);

// Counts backwards in a row in which the same rank was slow.
class SlowRankStreak {
 public:
  static constexpr int kBackwards = 4;

  // Adds the next backward. Returns true when the streak is long enough.
  bool add(const std::optional<SlowRank>& found);

 private:
  int rank_ = -1;
  int backwards_ = 0;
};

}  // namespace brigade::dist
