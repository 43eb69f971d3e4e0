// A collective in flight. It may outlive its process group: a Work that is incomplete when the group is destroyed fails
// with an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

namespace brigade::dist {

// Timestamps of a collective, on the clock of now_ns(); 0 when the transport cannot know.
struct WorkTimes {
  int64_t arrived = 0;  // all ranks had posted it; until then this rank waited for its peers
  int64_t reduced = 0;  // the result was ready; this rank may have noticed later
};

// Timestamps of a collective that a device runs; 0 until it has run.
struct DeviceSpan {
  int64_t began = 0;  // its turn in the stream came; it may then have waited for peers
  int64_t ended = 0;
};

class Work {
 public:
  virtual ~Work() = default;

  // True when the result is ready or an error is known; never blocks. May advance the work (the shared-memory groups
  // reduce on the calling thread).
  virtual bool is_completed() = 0;
  // Blocks until the result is ready. Throws TimeoutError (names the missing ranks and the collective), PeerError (a
  // rank died, left or aborted: names the rank and its last message), DistError (ranks disagree on the collective:
  // names both call sites). Without an argument the group's timeout applies.
  virtual void wait() = 0;
  virtual void wait(std::chrono::milliseconds timeout) = 0;
  // Whether it completes within `time`. Running out of time has no effect on the work; does not throw.
  virtual bool completes_within(std::chrono::milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (!is_completed()) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  // Valid once the work is complete.
  virtual WorkTimes times() const { return {}; }
  // May be called at any time; does not block.
  virtual DeviceSpan on_device() const { return {}; }
};

using WorkPtr = std::shared_ptr<Work>;

}  // namespace brigade::dist
