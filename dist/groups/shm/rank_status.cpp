// Writes and reads the informational parts of a rank's block.
#include <brigade/dist/groups/shm/rank_status.h>

#include <brigade/core/clock.h>
#include <brigade/dist/groups/shm/counter.h>

#include <chrono>
#include <thread>

namespace brigade::dist::shm {
namespace {

// Returns false if the lock is still held after a second. A running holder releases it within a microsecond, but all
// ranks in a mismatch read at once, and one of them may have to wait for a processor. Only a dead holder takes longer.
bool lock_activity(RankBlock& block) noexcept {
  constexpr int kTriesAwake = 1000;
  constexpr std::chrono::microseconds kNap{50};
  constexpr int64_t kMost = 1'000'000'000;  // ns
  int64_t napping_since = 0;
  for (int tries = 0;; ++tries) {
    uint32_t free = 0;
    if (block.activity_lock.compare_exchange_strong(free, 1, std::memory_order_acquire)) return true;
    if (tries < kTriesAwake) {
      pause_briefly();
      continue;
    }
    const int64_t now = now_ns();
    if (napping_since == 0) napping_since = now;
    if (now - napping_since > kMost) return false;
    std::this_thread::sleep_for(kNap);
  }
}

void put_activity(RankStatus& place, const ActivityRecord& record, int64_t at) {
  place.activity = activity_of(record);
  if (place.activity.doing != Doing::Nothing) place.activity_seconds = static_cast<double>(at - record.since) * 1e-9;
}

}  // namespace

void note_activity(RankBlock& own, const RankActivity& activity) noexcept {
  lock_activity(own);  // on failure a peer died while it read: takes over its lock
  uint32_t at = own.activity.load(std::memory_order_relaxed);
  const uint32_t arrived = own.arrived.load(std::memory_order_relaxed);
  // Each collective keeps at most one entry, so no unfinished collective refers to the next entry in turn.
  if (arrived > 0 && own.ring[arrived % kRing].activity == at) at = (at + 1) % RankBlock::kActivities;
  tell(own.activities[at], activity);
  own.activities[at].since = now_ns();
  own.activity.store(at, std::memory_order_relaxed);
  own.activity_lock.store(0, std::memory_order_release);
}

RankStatus rank_status_of(RankBlock& block, const RankName& name) {
  RankStatus place;
  place.rank = name;
  if (const uint32_t arrived = block.arrived.load(std::memory_order_acquire); arrived > 0) {
    place.last = info_of(block, arrived);
    place.finished = reached(block.done, arrived);
  }
  if (lock_activity(block)) {
    // The index comes from another process, so it is kept within bounds.
    const uint32_t at = block.activity.load(std::memory_order_relaxed) % RankBlock::kActivities;
    put_activity(place, block.activities[at], now_ns());
    block.activity_lock.store(0, std::memory_order_release);
  }
  return place;
}

RankStatus rank_status_at(const RankBlock& block, const RankName& name, uint32_t sequence) {
  RankStatus place;
  place.rank = name;
  place.last = info_of(block, sequence);
  const Header& header = block.ring[sequence % kRing];
  put_activity(place, block.activities[header.activity % RankBlock::kActivities], header.posted_at);
  return place;
}

void leave(RankBlock& own, Departure::How how, std::string_view words) noexcept {
  copy_text(own.exit_message, words);
  own.end.store(how);
  wake_sleepers(own);
}

Departure end_of(const RankBlock& block) {
  const Departure::How how = block.end.load(std::memory_order_acquire);
  if (how == Departure::How::Running) return {};
  return {how, block.exit_message};
}

}  // namespace brigade::dist::shm
