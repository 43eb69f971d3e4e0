// Collectives that advance only when this rank works on them (shm, threads). A thread that waits for something else (a
// message, another group) advances them: the peer that it waits for may be waiting for this rank's part in them.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace brigade::dist {

class Unfinished : public std::enable_shared_from_this<Unfinished> {
 public:
  // Held while a thread works on the group, which may be posted to on one thread and waited for on another.
  std::mutex& mutex() noexcept { return mutex_; }

  // Requires the lock. From now on the waits of this thread call `advance`, with the lock held, until it returns false:
  // nothing is left to do. It must not throw.
  void begin(std::function<bool()> advance) {
    advance_ = std::move(advance);
    if (has_ended_) return;
    if (std::ranges::find(posted_here(), this, &std::shared_ptr<Unfinished>::get) == posted_here().end())
      posted_here().push_back(shared_from_this());
  }
  // Takes the lock: `advance` is not called again.
  void end() {
    const std::lock_guard lock(mutex_);
    advance_ = nullptr;
  }

  // Advances what this thread has posted, except in the group of `except`, whose lock the caller may hold. Returns
  // whether something is left. Every loop that waits for a peer calls it.
  static bool advance_all(const Unfinished* except = nullptr) {
    if (has_ended_) return false;
    std::erase_if(posted_here(), [&](const std::shared_ptr<Unfinished>& each) {
      if (each.get() == except) return false;
      const std::unique_lock lock(each->mutex_, std::try_to_lock);
      if (!lock.owns_lock()) return false;  // another thread works on it
      if (each->advance_ && each->advance_()) return false;
      each->advance_ = nullptr;
      return true;
    });
    return !posted_here().empty();
  }

 private:
  static std::vector<std::shared_ptr<Unfinished>>& posted_here() {
    struct Posted {
      std::vector<std::shared_ptr<Unfinished>> groups;
      ~Posted() { has_ended_ = true; }
    };
    thread_local Posted posted;
    return posted.groups;
  }

  // Static objects that hold a group outlive the list of their thread.
  static inline constinit thread_local bool has_ended_ = false;

  std::mutex mutex_;
  std::function<bool()> advance_;
};

}  // namespace brigade::dist
