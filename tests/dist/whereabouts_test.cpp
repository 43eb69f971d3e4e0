// What ranks of a host read of each other while others read it too, or died at that.
#include <brigade/dist/groups/shm/whereabouts.h>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <thread>

namespace brigade::test::whereabouts_test {

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
  const dist::Whereabouts place = dist::shm::whereabouts_of(*block, {1});
  other.join();
  CHECK(place.activity == doing(dist::Doing::AfterForward, "train.cpp", 7));
  CHECK(in_words(place.activity) == "its own code, after a forward of DDP(Net)");
  CHECK(block->activity_lock.load() == 0);
}

TEST_CASE("a rank goes on although a peer died while it read what it does, and peers leave that out") {
  const auto block = std::make_unique<RankBlock>();
  dist::shm::note_activity(*block, doing(dist::Doing::AfterForward, "train.cpp", 7));
  block->activity_lock.store(1);
  CHECK(dist::shm::whereabouts_of(*block, {1}).activity.doing == dist::Doing::Nothing);
  dist::shm::note_activity(*block, doing(dist::Doing::Forward, "train.cpp", 8));
  CHECK(dist::shm::whereabouts_of(*block, {1}).activity == doing(dist::Doing::Forward, "train.cpp", 8));
}

}  // namespace brigade::test::whereabouts_test
