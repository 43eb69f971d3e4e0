// The clock of timelines, traces and flight recorders.
#pragma once

#include <chrono>
#include <cstdint>

namespace brigade {

// RAII: each call of now_ns() on this thread adds 100 ns to `clock` and returns it. In a simulation, the times that a
// rank reports then depend only on what the ranks do.
class SimulatedClock {
 public:
  explicit SimulatedClock(int64_t& clock) noexcept { now_ = &clock; }
  ~SimulatedClock() { now_ = nullptr; }
  SimulatedClock(const SimulatedClock&) = delete;
  SimulatedClock& operator=(const SimulatedClock&) = delete;

 private:
  friend int64_t now_ns() noexcept;
  static inline constinit thread_local int64_t* now_ = nullptr;
};

// Nanoseconds of the steady clock of this process, or of the SimulatedClock of this thread.
inline int64_t now_ns() noexcept {
  if (SimulatedClock::now_) return *SimulatedClock::now_ += 100;
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace brigade
