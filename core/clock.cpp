// Reads the steady clock, unless a simulation has put its own in place on this thread.
#include <brigade/core/clock.h>

#include <chrono>

namespace brigade {

namespace {
thread_local int64_t* simulated = nullptr;
}  // namespace

SimulatedClock::SimulatedClock(int64_t& clock) noexcept { simulated = &clock; }
SimulatedClock::~SimulatedClock() { simulated = nullptr; }

int64_t now_ns() noexcept {
  if (simulated) return *simulated += 100;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace brigade
