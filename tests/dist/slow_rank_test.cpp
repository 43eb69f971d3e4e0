// Finds the rank that is slow in backward, from synthetic times.
#include <brigade/dist/diagnosis/slow_rank.h>

#include <brigade/dist/diagnosis/numbers.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::slow_rank_test {

using namespace brigade::dist;

constexpr int64_t kMs = 1000;  // in microseconds

struct Backward {
  const char* name;
  std::vector<ReadyTimes> ranks;
  std::optional<SlowRank> expected;
};

// From one time per rank, that of its last gradient.
std::optional<SlowRank> slow_of(const std::vector<int64_t>& last) {
  std::vector<ReadyTimes> ranks;
  for (const int64_t time : last)
    ranks.push_back({time});
  return find_slow_rank(ranks);
}

bool suspected(const std::vector<double>& ms) {
  double sum = 0, squares = 0;
  for (const double time : ms) {
    sum += time;
    squares += time * time;
  }
  const auto n = static_cast<double>(ms.size());
  const double mean = sum / n;
  return may_have_slow_rank(mean, std::max(0.0, squares / n - mean * mean), static_cast<int>(ms.size()));
}

TEST_CASE("a rank is slow when it is late by more than 12 ms and by more than half of what the others take") {
  const std::vector<Backward> backwards{
      {"no rank at all", {}, {}},
      {"a world of one is never slow", {{90 * kMs, 900 * kMs}}, {}},
      {"equal times", {{5, 9}, {5, 9}, {5, 9}}, {}},
      {"late by 12 ms: not by more", {{1 * kMs}, {13 * kMs}}, {}},
      {"late by a little more than 12 ms", {{1 * kMs}, {13 * kMs + 1}}, SlowRank{1, 13 * kMs + 1, 1 * kMs, 0}},
      {"late by half of a long backward: not by more", {{400 * kMs}, {600 * kMs}}, {}},
      {"late by a little more than half", {{600 * kMs + 2}, {400 * kMs}}, SlowRank{0, 600 * kMs + 2, 400 * kMs, 0}},
      {"beside the median of three others, of which one is quick",
       {{100 * kMs}, {10 * kMs}, {100 * kMs}, {140 * kMs}},
       {}},
      {"beside the median of three others, of which one is slow too",
       {{10 * kMs}, {10 * kMs}, {90 * kMs}, {100 * kMs}},
       SlowRank{3, 100 * kMs, 10 * kMs, 0}},
      {"a rank without gradients is no measure", {{-1, -1}, {90 * kMs, -1}}, {}},
      {"a rank without gradients is left out",
       {{-1, -1}, {1 * kMs, 2 * kMs}, {1 * kMs, 30 * kMs}},
       SlowRank{2, 30 * kMs, 2 * kMs, 1}},
      {"the first parameter that is late, not the last",
       {{40 * kMs, 1 * kMs, 30 * kMs, 2 * kMs}, {4 * kMs, 1 * kMs, 3 * kMs, 2 * kMs}},
       SlowRank{0, 40 * kMs, 4 * kMs, 2}},
      {"a parameter that the others have not is passed over",
       {{3 * kMs, 20 * kMs, 40 * kMs}, {3 * kMs, -1, 4 * kMs}},
       SlowRank{0, 40 * kMs, 4 * kMs, 2}},
      {"lost little by little: where half is lost",
       {{10 * kMs, 20 * kMs, 30 * kMs, 40 * kMs}, {1 * kMs, 2 * kMs, 3 * kMs, 4 * kMs}},
       SlowRank{0, 40 * kMs, 4 * kMs, 2}},
  };
  for (const Backward& backward : backwards) {
    CAPTURE(backward.name);
    const std::optional<SlowRank> found = find_slow_rank(backward.ranks);
    REQUIRE(found.has_value() == backward.expected.has_value());
    if (!found) continue;
    CHECK(found->rank == backward.expected->rank);
    CHECK(found->last_us == backward.expected->last_us);
    CHECK(found->others_us == backward.expected->others_us);
    CHECK(found->parameter == backward.expected->parameter);
  }
}

TEST_CASE("mean and variance suspect every backward that has a slow rank beside equal ones, and no world of one") {
  CHECK(distance_of_one(1e-3, 1) == 0);
  for (const int ranks : {2, 3, 8, 64}) {
    CAPTURE(ranks);
    for (const double others : {1.0, 20.0, 400.0}) {
      CAPTURE(others);
      const double most = std::max(12.0, others / 2);
      std::vector<double> ms(static_cast<size_t>(ranks), others);
      CHECK_FALSE(suspected(ms));
      ms.back() = others + most + 0.1;
      CHECK(suspected(ms));
      ms.back() = others + most - 0.1;
      CHECK_FALSE(suspected(ms));
    }
  }
  // A zero variance, what rounding leaves of it, and more.
  for (const double variance : {0.0, 1e-9, 1e-3, 1e6})
    CHECK_FALSE(may_have_slow_rank(7.0, variance, 1));
  // The squares of long times are infinite in float16: the times themselves decide.
  CHECK(may_have_slow_rank(300.0, INFINITY, 2));
}

TEST_CASE("a streak is four backwards in a row in which the same rank is slow") {
  struct Row {
    const char* name;
    std::vector<int> slow;  // per backward: the slow rank, -1 for none
    int expected;           // the backward in which the streak is long enough, -1 for none
  };
  for (const Row& row : std::vector<Row>{{"the same rank", {1, 1, 1, 1}, 3},
                                         {"after others", {0, -1, 2, 2, 2, 2}, 5},
                                         {"ranks that take turns", {0, 1, 0, 1, 0, 1, 0, 1}, -1},
                                         {"four ranks, one after the other", {0, 1, 2, 3, 0, 1, 2, 3}, -1},
                                         {"three, a pause, three", {1, 1, 1, -1, 1, 1, 1}, -1},
                                         {"three, another rank, three", {1, 1, 1, 0, 1, 1, 1}, -1},
                                         {"nobody", {-1, -1, -1, -1, -1}, -1}}) {
    CAPTURE(row.name);
    SlowRankStreak streak;
    int found = -1;
    for (size_t i = 0; i < row.slow.size(); ++i) {
      std::vector<int64_t> last(4, 5 * kMs);
      if (row.slow[i] >= 0) last[static_cast<size_t>(row.slow[i])] = 50 * kMs;
      if (streak.add(slow_of(last)) && found < 0) found = static_cast<int>(i);
    }
    CHECK(found == row.expected);
  }
}

}  // namespace brigade::test::slow_rank_test
