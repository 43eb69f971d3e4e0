// Sleeping on a counter and waking the sleepers.
#include <brigade/dist/groups/shm/counter.h>

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

}  // namespace

void publish(RankBlock& own, std::atomic<uint32_t>& counter, uint32_t value) noexcept {
  // Sequentially consistent with the sleepers' announcement in sleep_on(): either we see the
  // sleeper or it sees the new value.
  counter.store(value);
  if (own.sleepers.load() > 0) futex_wake_all(counter);
}

void sleep_on(RankBlock& peer, std::atomic<uint32_t>& counter, uint32_t sequence) noexcept {
  peer.sleepers.fetch_add(1);
  const uint32_t value = counter.load();
  if (!reached(value, sequence)) futex_wait(counter, value, 1'000'000);
  peer.sleepers.fetch_sub(1);
}

void wake_sleepers(RankBlock& own) noexcept {
  for (std::atomic<uint32_t>* counter : {&own.arrived, &own.done, &own.staged, &own.reduced})
    futex_wake_all(*counter);
}

}  // namespace brigade::dist::shm
