// Writes and reads the parts of a rank's block that are for people.
#include <brigade/dist/groups/shm/whereabouts.h>

#include <brigade/dist/groups/shm/counter.h>
#include <brigade/dist/groups/shm/header.h>
#include <brigade/dist/timeline/timeline.h>

namespace brigade::dist::shm {

void note_activity(RankBlock& own, std::string_view what, const Place& where) noexcept {
  for (uint32_t free = 0; !own.activity_lock.compare_exchange_weak(free, 1, std::memory_order_acquire); free = 0)
    pause_briefly();  // a peer reads it
  copy_text(own.activity, what);
  tell(own.activity_at, where);
  own.activity_since.store(now_ns(), std::memory_order_relaxed);
  own.activity_lock.store(0, std::memory_order_release);
}

Whereabouts whereabouts_of(RankBlock& block, const RankName& name) {
  Whereabouts place;
  place.rank = name;
  if (const uint32_t arrived = block.arrived.load(std::memory_order_acquire); arrived > 0) {
    place.last = info_of(block.ring[arrived % kRing]);
    place.finished = reached(block.done, arrived);
  }
  for (int tries = 0; tries < 1000; ++tries) {
    uint32_t free = 0;
    if (!block.activity_lock.compare_exchange_strong(free, 1, std::memory_order_acquire)) {
      pause_briefly();
      continue;
    }
    place.activity = block.activity;
    place.activity_at = place_of(block.activity_at);
    place.activity_seconds =
        static_cast<double>(now_ns() - block.activity_since.load(std::memory_order_relaxed)) * 1e-9;
    block.activity_lock.store(0, std::memory_order_release);
    break;
  }
  return place;
}

void leave(RankBlock& own, Status status, std::string_view words) noexcept {
  copy_text(own.last_words, words);
  own.status.store(status);
  wake_sleepers(own);
}

std::string how_it_left(const RankBlock& block) {
  switch (block.status.load(std::memory_order_acquire)) {
    case Status::Running: return "";
    case Status::Left: return block.last_words;
    case Status::Failed: return std::string("failed: ") + block.last_words;
  }
  return "";
}

}  // namespace brigade::dist::shm
