// How long a wait in shared memory polls before it sleeps.
#include <brigade/dist/groups/shm/counter.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

namespace brigade::test::pauses_threads_test {
// The number of polls of one wait that finds nothing, on the calling thread.
int looks(bool crowded) {
  int count = 0;
  for (dist::shm::Pauses pauses(crowded); pauses.next();)
    ++count;
  return count;
}

TEST_CASE(
    "a wait looks on for long while nobody wants its processor, shortly after a late wake, never where ranks outnumber processors") {
  int most_alone = 0, least_wanted = 1 << 30;
  // Each wait runs on a new thread, without history; a thread that is preempted while it polls only polls less.
  for (int tries = 0; tries < 20; ++tries) {
    std::thread([&] { most_alone = std::max(most_alone, looks(false)); }).join();
    std::thread([&] {
      dist::shm::note_wake(1'000'000);
      least_wanted = std::min(least_wanted, looks(false));
    }).join();
  }
  CHECK(least_wanted > 0);
  CHECK(most_alone > 4 * least_wanted);
  CHECK(looks(true) == 0);
  // A wake in time is no sign that others want the processor.
  std::thread([&] {
    dist::shm::note_wake(10'000);
    int most = 0;
    for (int tries = 0; tries < 20; ++tries)
      most = std::max(most, looks(false));
    CHECK(most > 4 * least_wanted);
  }).join();
}

}  // namespace brigade::test::pauses_threads_test
