// What ranks of a host read of each other while others read it too, or died at that.
#include <brigade/dist/groups/shm/whereabouts.h>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <thread>

namespace brigade::test::whereabouts_test {

using dist::shm::RankBlock;

TEST_CASE("what a rank does is read although another reader was put to sleep meanwhile") {
  const auto block = std::make_unique<RankBlock>();
  dist::shm::note_activity(*block, "a backward of DDP(Net)", {"train.cpp", 7});
  block->activity_lock.store(1);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    block->activity_lock.store(0);
  });
  const dist::Whereabouts place = dist::shm::whereabouts_of(*block, {1});
  other.join();
  CHECK(place.activity == "a backward of DDP(Net)");
  CHECK(place.activity_at == Place("train.cpp", 7));
  CHECK(block->activity_lock.load() == 0);
}

TEST_CASE("a rank goes on although a peer died while it read what it does, and peers leave that out") {
  const auto block = std::make_unique<RankBlock>();
  dist::shm::note_activity(*block, "a backward of DDP(Net)", {"train.cpp", 7});
  block->activity_lock.store(1);
  CHECK(dist::shm::whereabouts_of(*block, {1}).activity == "");
  dist::shm::note_activity(*block, "a forward of DDP(Net)", {"train.cpp", 8});
  CHECK(dist::shm::whereabouts_of(*block, {1}).activity == "a forward of DDP(Net)");
}

}  // namespace brigade::test::whereabouts_test
