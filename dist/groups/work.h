// A collective in flight. It may outlive its process group: one that was not complete when the
// group was destroyed ends with an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

namespace brigade::dist {

// Moments of a collective, by the steady clock of this process (timeline.h: now_ns); 0: the
// transport cannot know.
struct WorkTimes {
  int64_t arrived = 0;  // all ranks had posted it: before that this rank waited for its peers
  int64_t reduced = 0;  // the result was there, which this rank may have seen later
};

// The same of a collective that a device runs; 0 until it has.
struct DeviceSpan {
  int64_t began = 0;  // its turn came; it may have waited for peers since
  int64_t ended = 0;
};

class Work {
 public:
  virtual ~Work() = default;

  // True when the result is there or an error is known; never blocks. May do a share of the work
  // (the shared-memory groups reduce on the threads that ask).
  virtual bool is_completed() = 0;
  // Blocks until the result is there. Throws TimeoutError (names the ranks that are missing and the
  // collective), PeerError (a rank died, left or aborted: names it and its last words), DistError
  // (ranks disagree on the collective: names both call sites). Without a timeout of its own it
  // takes the group's.
  virtual void wait() = 0;
  virtual void wait(std::chrono::milliseconds timeout) = 0;
  // Whether it completes within that time. Gives nothing up, and throws nothing.
  virtual bool completes_within(std::chrono::milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (!is_completed()) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  // Once it is complete.
  virtual WorkTimes times() const { return {}; }
  // At any time; waits for nothing.
  virtual DeviceSpan on_device() const { return {}; }
};

using WorkPtr = std::shared_ptr<Work>;

}  // namespace brigade::dist
