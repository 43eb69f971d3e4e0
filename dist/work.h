// A collective in flight. It must not outlive its process group.
#pragma once

#include <chrono>
#include <memory>

namespace brigade::dist {

class Work {
 public:
  virtual ~Work() = default;

  // True when the result is there or an error is known; never blocks. May do a share of the work (the shared-memory
  // groups reduce on the threads that ask).
  virtual bool is_completed() = 0;
  // Blocks until the result is there. Throws TimeoutError (names the ranks that are missing and the collective),
  // PeerError (a rank died, left or aborted: names it and its last words), DistError (ranks disagree on the collective:
  // names both call sites). Without a timeout of its own it takes the group's.
  virtual void wait() = 0;
  virtual void wait(std::chrono::milliseconds timeout) = 0;
};

using WorkPtr = std::shared_ptr<Work>;

}  // namespace brigade::dist
