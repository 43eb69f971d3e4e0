// Whose gradients are of another size: decided from sizes alone, for the advisory gradient_outlier.
//
// A rank stands out in a parameter when its gradient is farther from the middle of the ranks than
// 2^4.5 (22 times). What is only rounding noise on some rank says nothing: 2^-33 of the sum of
// squares of all of its gradients.
#pragma once

#include <brigade/core/place.h>

#include <cstdint>
#include <span>
#include <vector>

namespace brigade::dist {

// Of one parameter on one rank, before the reduction.
struct GradientSize {
  double log2 = kNone;  // of the sum of squares
  Place hook;           // of its last gradient hook, not known without one

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
  std::vector<int> ranks;     // who stands out in some parameter, in the order of the parameters
  double distance = 0;        // the largest, as log2 of the sums of squares
  Place hook;                 // the hook of the parameter with that distance, on that rank
  bool hooks_differ = false;  // and its hook is not on every rank
};

// `by_rank`: one entry per parameter, all of one length.
Outlier find_outlier(std::span<const std::vector<GradientSize>> by_rank);

// Backwards in a row in which the same ranks stood out: size by itself varies in a sound training
// too (a batch that one rank has learnt by heart).
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
