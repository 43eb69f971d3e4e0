// The clock that times in a timeline, a trace and a flight recorder are read from.
#pragma once

#include <cstdint>

namespace brigade {

// Nanoseconds of the steady clock of this process, or of the SimulatedClock of this thread.
int64_t now_ns() noexcept;

// While it lives, each reading of now_ns() on this thread adds 100 ns to `clock`, and returns it: in a simulation, whatever
// a rank says of times depends on what the ranks do alone.
class SimulatedClock {
 public:
  explicit SimulatedClock(int64_t& clock) noexcept;
  ~SimulatedClock();
  SimulatedClock(const SimulatedClock&) = delete;
  SimulatedClock& operator=(const SimulatedClock&) = delete;
};

}  // namespace brigade
