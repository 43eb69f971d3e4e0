// Benchmark rounds: the order of turns, and when the rounds end.
#include <brigade/lab/bench/rounds.h>

#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/lab/bench/benchmark.h>

#include <brigade/core/error.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <mutex>

namespace brigade::test::bench_rounds_test {

using namespace brigade::lab::bench;

// A turn that returns the times one after another and then repeats the last one.
Turn turn_of(const std::string& name, std::vector<double> times, std::string* order = nullptr) {
  return {name, [name, times, order, next = size_t{0}]() mutable {
            if (order) *order += name;
            const double time = times[std::min(next, times.size() - 1)];
            ++next;
            return time;
          }};
}

TEST_CASE("rounds that were asked for exactly are run exactly, and the warm-up does not count") {
  std::vector<Turn> turns{turn_of("a", {100, 1, 2, 3, 4}), turn_of("b", {7})};
  const RoundsRun run = take_turns(turns, {.least = 4, .most = 4, .noise = 0.001, .seconds = 0, .warm_up = 1});
  CHECK(run.rounds == 4);
  CHECK(turns[0].us == std::vector<double>{1, 2, 3, 4});
  CHECK(turns[1].us == std::vector<double>{7, 7, 7, 7});
}

TEST_CASE("the order moves on each round, so that none always follows the same") {
  std::string order;
  std::vector<Turn> turns{turn_of("a", {1}, &order), turn_of("b", {1}, &order), turn_of("c", {1}, &order)};
  take_turns(turns, {.least = 3, .most = 3, .warm_up = 0});
  CHECK(order == "abcbcacab");
}

TEST_CASE("rounds end when the noise of every turn is below the bound") {
  // Alternates between 1 and 3, then stays at 2: the quartiles meet once most samples are 2.
  std::vector<Turn> turns{turn_of("steady", {5}), turn_of("calms down", {1, 3, 1, 3, 2})};
  const RoundsRun run = take_turns(turns, {.least = 3, .most = 1000, .noise = 0.01, .seconds = 60, .warm_up = 0});
  CHECK(run.rounds > 4);
  CHECK(run.rounds < 12);
  CHECK(run.noise <= 0.01);
  CHECK(turns[0].us.size() == turns[1].us.size());
}

TEST_CASE("rounds end at the most, and at the time limit, however noisy") {
  const auto noisy = [] {
    std::vector<double> times;
    for (int i = 0; i < 2000; ++i)
      times.push_back(1 + i % 2);
    return std::vector<Turn>{turn_of("noisy", times)};
  };
  std::vector<Turn> turns = noisy();
  const RoundsRun most = take_turns(turns, {.least = 3, .most = 20, .noise = 0.01, .seconds = 60, .warm_up = 0});
  CHECK(most.rounds == 20);
  CHECK(most.noise > 0.01);
  turns = noisy();
  CHECK(take_turns(turns, {.least = 3, .most = 2000, .noise = 0.001, .seconds = 0, .warm_up = 0}).rounds == 3);
  CHECK(lab::bench::in_words(most, {.noise = 0.01}).find("(above the bound of 1.0 %)") != std::string::npos);
}

TEST_CASE("all ranks end after the same round, though only one of them is noisy") {
  std::mutex lock;
  std::vector<int> rounds;
  std::vector<double> noise;
  dist::run_threads(3, [&](const dist::ProcessGroupPtr& group) {
    std::vector<Turn> turns{
        turn_of("one", group->rank() == 1 ? std::vector<double>{1, 3, 1, 3, 2} : std::vector<double>{2})};
    const RoundsRun run =
        take_turns(turns, {.least = 3, .most = 100, .noise = 0.01, .seconds = 60, .warm_up = 1}, group.get());
    const std::lock_guard guard(lock);
    rounds.push_back(run.rounds);
    noise.push_back(run.noise);
  });
  CHECK(rounds[0] > 3);
  CHECK(rounds == std::vector<int>(3, rounds[0]));
  CHECK(noise == std::vector<double>(3, noise[0]));
}

TEST_CASE("the limits of rounds on the command line, and as JSON") {
  CHECK(parse_rounds("5") == std::pair(5, 5));
  CHECK(parse_rounds("5-200") == std::pair(5, 200));
  for (const std::string text : {"", "0", "-5", "5-", "9-5", "5-1000001", "5x", "1-2-3"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_rounds(text), ValueError);
  }
  const RoundLimits limits{.least = 2, .most = 3, .noise = 0.5, .seconds = 7, .warm_up = 4};
  CHECK(to_json(round_limits_from(to_json(limits))) == to_json(limits));
  CHECK(round_limits_from(to_json(limits)).warm_up == 4);
}

}  // namespace brigade::test::bench_rounds_test
