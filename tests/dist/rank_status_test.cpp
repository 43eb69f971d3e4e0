// Ranks of a host read each other's activity while other ranks read it too, or have died while reading.
#include <brigade/dist/groups/shm/rank_status.h>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <thread>

namespace brigade::test::rank_status_test {

using dist::shm::RankBlock;

dist::RankActivity doing(dist::Doing what, const char* file, uint32_t line) {
  return {.doing = what, .owner = {dist::Name("DDP(Net)")}, .where = {dist::Name(file), line}};
}

TEST_CASE("what a rank does is read although another reader was put to sleep meanwhile") {
  const auto block = std::make_unique<RankBlock>();
  dist::shm::note_activity(*block, doing(dist::Doing::AfterForward, "train.cpp", 7));
  block->activity_lock.store(1);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    block->activity_lock.store(0);
  });
  const dist::RankStatus place = dist::shm::rank_status_of(*block, {1});
  other.join();
  CHECK(place.activity == doing(dist::Doing::AfterForward, "train.cpp", 7));
  CHECK(in_words(place.activity) == "its own code, after a forward of DDP(Net)");
  CHECK(block->activity_lock.load() == 0);
}

TEST_CASE("a rank goes on although a peer died while it read what it does, and peers leave that out") {
  const auto block = std::make_unique<RankBlock>();
  dist::shm::note_activity(*block, doing(dist::Doing::AfterForward, "train.cpp", 7));
  block->activity_lock.store(1);
  CHECK(dist::shm::rank_status_of(*block, {1}).activity.doing == dist::Doing::Nothing);
  dist::shm::note_activity(*block, doing(dist::Doing::Forward, "train.cpp", 8));
  CHECK(dist::shm::rank_status_of(*block, {1}).activity == doing(dist::Doing::Forward, "train.cpp", 8));
}

TEST_CASE("what a rank did when it posted a collective is read as it was then, whatever the rank does meanwhile") {
  const auto block = std::make_unique<RankBlock>();
  const auto activity = [](uint32_t line) { return doing(dist::Doing::Step, "train.cpp", line); };
  const auto post = [&](uint32_t sequence) {
    dist::shm::Header header;
    header.id.sequence = sequence;
    header.activity = block->activity.load();
    block->ring[sequence % dist::shm::kRing] = header;
    block->arrived.store(sequence);
  };
  dist::shm::note_activity(*block, activity(1));
  for (uint32_t sequence = 1; sequence <= 3 * dist::shm::kRing; ++sequence) {
    // None, one, or two activities lie between two collectives.
    for (uint32_t n = 0; n < sequence % 3; ++n)
      dist::shm::note_activity(*block, activity(10 * sequence + n));
    post(sequence);
    const uint32_t oldest = sequence <= dist::shm::kRing ? 1 : sequence - dist::shm::kRing + 1;
    dist::shm::note_activity(*block, doing(dist::Doing::AfterStep, "train.cpp", sequence));
    for (uint32_t each = oldest; each <= sequence; ++each) {
      const uint32_t last = each % 3;
      const dist::RankActivity expected =
          last == 0 ? doing(dist::Doing::AfterStep, "train.cpp", each - 1) : activity(10 * each + last - 1);
      CHECK(dist::shm::rank_status_at(*block, {1}, each).activity == expected);
    }
    CHECK(dist::shm::rank_status_of(*block, {1}).activity == doing(dist::Doing::AfterStep, "train.cpp", sequence));
  }
}

}  // namespace brigade::test::rank_status_test
