// The clock of timelines, traces and flight recorders.
#pragma once

#include <cstdint>

namespace brigade {

// Nanoseconds of the steady clock of this process, or of the SimulatedClock of this thread.
int64_t now_ns() noexcept;

// RAII: each call of now_ns() on this thread adds 100 ns to `clock` and returns it. In a simulation, the times that a
// rank reports then depend only on what the ranks do.
class SimulatedClock {
 public:
  explicit SimulatedClock(int64_t& clock) noexcept;
  ~SimulatedClock();
  SimulatedClock(const SimulatedClock&) = delete;
  SimulatedClock& operator=(const SimulatedClock&) = delete;
};

}  // namespace brigade
