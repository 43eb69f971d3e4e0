#include "processes.h"

#include <brigade/core/factory.h>

#include <doctest/doctest.h>

#include <csignal>

#include <unistd.h>

namespace brigade::test::collectives_test {
using test::run_ranks;

TEST_CASE("SIGKILL of a rank in the middle of a collective is an error of the survivors that names it") {
  for (const std::string& backend : test::backends()) {
    if (backend == "threads") continue;
    for (const int ranks : {2, 3}) {
      CAPTURE(backend);
      CAPTURE(ranks);
      const auto outcome = run_ranks(backend, ranks, [ranks](dist::ProcessGroupPtr group) -> std::string {
        const Tensor x = group->allocate(1 << 16, kFloat32);
        for (int i = 0; i < 1000000; ++i) {
          if (i == 50 && group->rank() == ranks - 1) kill(getpid(), SIGKILL);
          group->all_reduce(x)->wait();
        }
        return "";
      });
      CHECK(outcome.back().signal == SIGKILL);
      for (int r = 0; r + 1 < ranks; ++r) {
        CAPTURE(outcome[static_cast<size_t>(r)].text);
        CHECK_FALSE(outcome[static_cast<size_t>(r)].hung);
        CHECK((outcome[static_cast<size_t>(r)].error == "PeerError" ||
               outcome[static_cast<size_t>(r)].error == "TimeoutError"));
        if (backend == "shm") {
          CHECK(outcome[static_cast<size_t>(r)].text.find("Rank " + std::to_string(ranks - 1) + " died") !=
                std::string::npos);
          CHECK(outcome[static_cast<size_t>(r)].seconds < 50);  // long before the time-out
        }
      }
    }
  }
}

TEST_CASE("a rank that does not come is a timeout which names it, on every backend") {
  for (const std::string& backend : test::backends()) {
    CAPTURE(backend);
    const test::SharedCount gave_up;
    const auto outcome = run_ranks(
        backend, 2,
        [&](dist::ProcessGroupPtr group) -> std::string {
          const Tensor x = group->allocate(10, kFloat32);
          group->all_reduce(x)->wait();
          if (group->rank() == 1) {
            // Busy with something else for longer than the other rank's timeout.
            return gave_up.wait_for(1) ? "" : "nobody gave up";
          }
          const test::SharedCount::AddAtEnd adds{gave_up};
          group->all_reduce(x, {.description = "the second"})->wait();
          return "";
        },
        std::chrono::milliseconds(1500));
    CHECK(outcome[0].error == "TimeoutError");
    CHECK(outcome[0].text.find("timed out after 1500 ms") != std::string::npos);
    CHECK(outcome[0].text.find("the second") != std::string::npos);
    CHECK(outcome[0].text.find("collectives_test.cpp:") != std::string::npos);
    if (backend != "gloo") CHECK(outcome[0].text.find("Rank 1 did not come to") != std::string::npos);
  }
}

}  // namespace brigade::test::collectives_test
