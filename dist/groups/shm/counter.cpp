// Sleeps on counters, and wakes the sleepers.
#include <brigade/dist/groups/shm/counter.h>

#include <brigade/core/clock.h>

#include <limits>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace brigade::dist::shm {
namespace {

void futex_wait(std::atomic<uint32_t>& word, uint32_t value, int64_t nanoseconds) noexcept {
  const timespec timeout{0, nanoseconds};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

// How long a wait polls: longer than it takes to wake, or, under contention, as long as synchronized ranks need.
constexpr int64_t kLongNs = 200'000, kShortNs = 5'000;
// Longer than an interrupt takes, and longer than a thread takes to wake on an idle processor.
constexpr int64_t kStoppedNs = 50'000, kLateNs = 200'000;
// For this long after the last sign of contention, waits poll only briefly.
constexpr int64_t kMemoryNs = 200'000'000;
constexpr uint32_t kLooksPerClock = 8;

// Until this time other threads are assumed to want this thread's processor.
thread_local int64_t wanted_until = 0;

}  // namespace

bool Pauses::next() noexcept {
  if (crowded_) return false;
  pause_briefly();
  if (++looks_ % kLooksPerClock != 0) return true;
  const int64_t now = now_ns();
  if (until_ == 0) {
    until_ = now + (now < wanted_until ? kShortNs : kLongNs);
  } else if (now - last_ > kStoppedNs) {
    wanted_until = now + kMemoryNs;
    return false;
  }
  last_ = now;
  return now < until_;
}

void note_wake(int64_t late_ns) noexcept {
  if (late_ns > kLateNs) wanted_until = now_ns() + kMemoryNs;
}

void publish(RankBlock& own, std::atomic<uint32_t>& counter, uint32_t value) noexcept {
  // Sequentially consistent with the sleepers' announcement in sleep_on(): either we see the
  // sleeper or it sees the new value.
  counter.store(value);
  if (own.sleepers.load() > 0) futex_wake_all(counter);
}

void sleep_on(RankBlock& peer, std::atomic<uint32_t>& counter, uint32_t sequence) noexcept {
  peer.sleepers.fetch_add(1);
  const uint32_t value = counter.load();
  if (!reached(value, sequence)) futex_wait(counter, value, kNapNs);
  peer.sleepers.fetch_sub(1);
}

void wake_sleepers(RankBlock& own) noexcept {
  for (std::atomic<uint32_t>* counter : {&own.arrived, &own.done, &own.staged, &own.reduced})
    futex_wake_all(*counter);
}

}  // namespace brigade::dist::shm
