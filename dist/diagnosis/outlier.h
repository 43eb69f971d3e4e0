// Finds ranks whose gradients are of a different size, from the sizes alone, for the advisory gradient_outlier.
//
// A rank stands out in a parameter when its gradient is farther from the middle of the ranks than
// 2^4.5 (22 times). A gradient that is mere rounding noise on some rank is ignored: its sum of
// squares is below 2^-33 of that of all gradients of the rank.
#pragma once

#include <brigade/core/place.h>

#include <cstdint>
#include <span>
#include <vector>

namespace brigade::dist {

// The size of one parameter's gradient on one rank, before the reduction.
struct GradientSize {
  double log2 = kNone;  // of the sum of squares
  Place hook;           // its last gradient hook; no line if it has none

  static constexpr double kNone = -999;  // no gradient
  bool is_there() const noexcept { return log2 > -900; }
};

struct Outlier {
  struct Parameter {
    uint32_t position = 0;
    int rank = 0;             // whose gradient stands out
    std::vector<int> others;  // the other ranks that have one
  };
  std::vector<Parameter> parameters;
  std::vector<int> ranks;     // ranks that stand out in some parameter, in the order of the parameters
  double offset = 0;          // the largest from the middle, of log2 of the sums of squares; below 0: it is smaller
  Place hook;                 // the hook of the parameter with that offset, on that rank
  bool hooks_differ = false;  // not every rank has that hook
};

// `by_rank`: one entry per parameter, all of one length.
Outlier find_outlier(std::span<const std::vector<GradientSize>> by_rank);

// Counts backwards in a row in which the same ranks stood out: sizes also vary in sound training (a
// batch that one rank has memorized).
class OutlierStreak {
 public:
  static constexpr int kBackwards = 6;

  // Adds the next backward. Returns true when the streak is long enough.
  bool add(const Outlier& found);
  void end() noexcept { backwards_ = 0; }

 private:
  std::vector<int> ranks_;
  int backwards_ = 0;
};

}  // namespace brigade::dist
