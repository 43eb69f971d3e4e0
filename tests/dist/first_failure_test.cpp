// Finds the rank that failed first, from how the ranks ended and the error records that they left.
#include <brigade/dist/rendezvous/launch/outcome.h>

#include <doctest/doctest.h>

#include <csignal>

namespace brigade::test::first_failure_test {
using dist::ErrorRecord;
using dist::find_first_failure;
using dist::RankEnd;

ErrorRecord own(int64_t time) { return {time, false, {}, "", "x"}; }
ErrorRecord because(int64_t time, int rank) { return {time, true, {rank}, "", "x"}; }

TEST_CASE("the earliest own error was first, however early the consequences are and the processes end") {
  // The victim's process ends before that of the culprit, whose error was first.
  CHECK(find_first_failure({{{0, 20, 134, SIGABRT, false, because(15, 1)}, {1, 30, 134, SIGABRT, false, own(10)}}})
            .rank == 1);
  CHECK(find_first_failure({{{0, 20, 1, 0, false, own(18)}, {1, 30, 1, 0, false, own(12)}}}).rank == 1);
  // Without a record, an error counts at the end of its process, and still comes before every consequence.
  CHECK(find_first_failure({{{0, 20, 1, 0, false, because(15, 1)}, {1, 30, 7, 0, false, {}}}}).rank == 1);
  CHECK(find_first_failure({{{0, 20, 1, 0, false, own(5)}, {1, 10, 7, 0, false, {}}}}).rank == 0);
  // A rank that was asked to end has no error of its own except a recorded one.
  CHECK(find_first_failure({{{0, 20, 1, 0, false, because(15, 1)}, {1, 30, 143, SIGTERM, true, own(9)}}}).rank == 1);
  // A signal from outside is not a consequence, even after a consequence that the rank survived.
  CHECK(find_first_failure({{{0, 20, 1, 0, false, because(8, 1)}, {1, 30, 139, SIGSEGV, false, because(3, 0)}}}).rank ==
        1);
  CHECK(find_first_failure({{{0, 20, 0, 0, false, because(15, 1)}}}).rank == -1);
}

TEST_CASE("a rank that ended with status 0 while others needed it was first, and the status is a victim's") {
  const auto first = find_first_failure({{{0, 20, 134, SIGABRT, false, because(15, 1)}, {1, 10, 0, 0, false, {}}}});
  CHECK(first.rank == 1);
  CHECK(first.left);
  CHECK(first.exit_code == 134);
  // On another node.
  const auto elsewhere = find_first_failure({{{0, 20, 134, SIGABRT, false, because(15, 5)}}});
  CHECK(elsewhere.rank == 0);
  CHECK(elsewhere.because_of == std::vector<int>{5});
}

TEST_CASE("a rank that others gave up on while it still ran was first, and the status is a victim's") {
  const auto first =
      find_first_failure({{{0, 20, 134, SIGABRT, false, because(15, 1)}, {1, 30, 137, SIGKILL, true, {}}}});
  CHECK(first.rank == 1);
  CHECK(first.awaited);
  CHECK(first.exit_code == 134);
  // It caught the signal.
  CHECK(find_first_failure({{{0, 20, 134, SIGABRT, false, because(15, 1)}, {1, 30, 0, 0, true, {}}}}).awaited);
  // A rank that waited itself has recorded so, and a rank that no record names is not involved.
  CHECK(
      find_first_failure({{{0, 20, 134, SIGABRT, false, because(15, 1)}, {1, 30, 143, SIGTERM, true, because(18, 2)}}})
          .rank == 0);
  CHECK(find_first_failure({{{0, 20, 134, SIGABRT, false, because(15, 5)}, {1, 30, 143, SIGTERM, true, {}}}}).rank ==
        0);
}

TEST_CASE("a rank that gave up because of another leads to that one, who has left no word") {
  // Rank 0 waited for rank 1, which waited for rank 2, which left.
  const auto left = find_first_failure({{{0, 20, 134, SIGABRT, false, because(15, 1)},
                                         {1, 21, 134, SIGABRT, false, because(16, 2)},
                                         {2, 5, 0, 0, false, {}}}});
  CHECK(left.rank == 2);
  CHECK(left.left);
  const auto awaited = find_first_failure({{{0, 20, 134, SIGABRT, false, because(15, 1)},
                                            {1, 21, 134, SIGABRT, false, because(16, 2)},
                                            {2, 30, 143, SIGTERM, true, {}}}});
  CHECK(awaited.rank == 2);
  CHECK(awaited.awaited);
  // In a cycle of waiting ranks none is at fault.
  CHECK(
      find_first_failure({{{0, 20, 134, SIGABRT, false, because(15, 1)}, {1, 21, 134, SIGABRT, false, because(16, 0)}}})
          .rank == 0);
}

}  // namespace brigade::test::first_failure_test
