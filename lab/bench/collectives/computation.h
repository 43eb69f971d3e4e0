// A computation of chosen length that needs no memory to speak of: what a program does while its
// collectives are under way.
#pragma once

#include <cstdint>

namespace brigade::lab::bench {

class Computation {
 public:
  // Measures how long a step takes on this processor: a few milliseconds.
  Computation();
  // Steps that last about so long.
  int64_t steps_in(double us) const;
  void run(int64_t steps) const;

 private:
  double steps_per_us_ = 1;
};

}  // namespace brigade::lab::bench
