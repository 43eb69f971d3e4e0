// A computation of chosen length that needs almost no memory. It stands for the work of a program while its
// collectives are in flight.
#pragma once

#include <cstdint>

namespace brigade::lab::bench {

class Computation {
 public:
  // Measures how long a step takes on this processor: a few milliseconds.
  Computation();
  // The number of steps that take about `us` microseconds.
  int64_t steps_in(double us) const;
  void run(int64_t steps) const;

 private:
  double steps_per_us_ = 1;
};

}  // namespace brigade::lab::bench
