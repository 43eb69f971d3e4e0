// Progress counters in shared memory: one rank writes, its peers poll, and sleep (futex) when it takes long. Polling
// and writing need no system calls while no rank sleeps.
#pragma once

#include <brigade/dist/groups/shm/control.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace brigade::dist::shm {

// Counters wrap around; the sign of the difference shows which is ahead.
inline bool reached(uint32_t counter, uint32_t sequence) noexcept {
  return static_cast<int32_t>(counter - sequence) >= 0;
}
inline bool reached(const std::atomic<uint32_t>& counter, uint32_t sequence) noexcept {
  return reached(counter.load(std::memory_order_acquire), sequence);
}

// Pauses between two polls, without a system call.
inline void pause_briefly() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// The pauses between the polls of one wait, until it is better to sleep. A sleeping thread takes some microseconds to
// wake, so it polls for longer than that, unless other threads want this processor: then the awaited peer may be one of
// them, and polling uses up the time slice in which this thread could continue. The thread infers contention from its
// own timing: it was preempted between two polls, or woke late. (sched_yield would show it too, but gives up a whole
// time slice.)
class Pauses {
 public:
  // `crowded`: more ranks than processors.
  explicit Pauses(bool crowded) noexcept : crowded_(crowded) {}
  // Call it after a poll without progress. Returns false when it is time to sleep.
  bool next() noexcept;
  // Call it after progress was made.
  void restart() noexcept { until_ = 0; }

 private:
  const bool crowded_;
  uint32_t looks_ = 0;
  int64_t until_ = 0, last_ = 0;  // ns of the steady clock; 0: not yet known
};
// Notes that this thread ran `late_ns` after it was woken.
void note_wake(int64_t late_ns) noexcept;

// `counter` is one of `own`. Wakes the peers that sleep on it.
void publish(RankBlock& own, std::atomic<uint32_t>& counter, uint32_t value) noexcept;
inline constexpr int64_t kNapNs = 1'000'000;
// Sleeps until `counter`, one of `peer`'s, has reached `sequence`, for at most kNapNs.
void sleep_on(RankBlock& peer, std::atomic<uint32_t>& counter, uint32_t sequence) noexcept;
// Wakes all ranks that sleep on a counter of `own`, so that they poll again.
void wake_sleepers(RankBlock& own) noexcept;

}  // namespace brigade::dist::shm
