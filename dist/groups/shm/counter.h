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

// Between two looks.
inline void pause_briefly() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// `counter` is one of `own`. Wakes who sleeps on it.
void publish(RankBlock& own, std::atomic<uint32_t>& counter, uint32_t value) noexcept;
// Until `counter`, one of `peer`'s, has reached `sequence`; for a millisecond at most.
void sleep_on(RankBlock& peer, std::atomic<uint32_t>& counter, uint32_t sequence) noexcept;
// Whoever sleeps on one of its counters looks again.
void wake_sleepers(RankBlock& own) noexcept;

}  // namespace brigade::dist::shm
