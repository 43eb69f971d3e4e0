// Counters in shared memory by which ranks tell how far they are: one rank writes, its peers look,
// and sleep on them (futex) when it takes long. Looking and writing are no system calls while
// nobody sleeps.
#pragma once

#include <brigade/dist/groups/shm/control.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace brigade::dist::shm {

// Counters wrap around; a difference says who is ahead.
inline bool reached(uint32_t counter, uint32_t sequence) noexcept {
  return static_cast<int32_t>(counter - sequence) >= 0;
}
inline bool reached(const std::atomic<uint32_t>& counter, uint32_t sequence) noexcept {
  return reached(counter.load(std::memory_order_acquire), sequence);
}

// Between two looks, without a system call.
inline void pause_briefly() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// The time between looks of one wait, until it is better to sleep. A thread that sleeps takes some
// microseconds to wake, so it looks on for longer than that, unless others want this processor: then
// a peer that is awaited may be one of them, and looking costs this thread the turn in which it could
// go on. Whether they do is known from its own time: it was stopped between two looks, or came late
// when it was woken. (sched_yield would tell as well, but gives up a whole turn.)
class Pauses {
 public:
  // `crowded`: more ranks than processors.
  explicit Pauses(bool crowded) noexcept : crowded_(crowded) {}
  // After a look that found nothing new. False: it is time to sleep.
  bool next() noexcept;
  // After one that did, and was worked on.
  void restart() noexcept { until_ = 0; }

 private:
  const bool crowded_;
  uint32_t looks_ = 0;
  int64_t until_ = 0, last_ = 0;  // ns of the steady clock; 0: not yet known
};
// This thread slept, and came so much later than it was woken.
void note_wake(int64_t late_ns) noexcept;

// `counter` is one of `own`. Wakes who sleeps on it.
void publish(RankBlock& own, std::atomic<uint32_t>& counter, uint32_t value) noexcept;
inline constexpr int64_t kNapNs = 1'000'000;
// Until `counter`, one of `peer`'s, has reached `sequence`; for kNapNs at most.
void sleep_on(RankBlock& peer, std::atomic<uint32_t>& counter, uint32_t sequence) noexcept;
// Whoever sleeps on one of its counters looks again.
void wake_sleepers(RankBlock& own) noexcept;

}  // namespace brigade::dist::shm
