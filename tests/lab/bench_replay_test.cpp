// brigade bench replay: the steps of a trace, and the same gradients in other buckets.
#include <brigade/lab/bench/replay/plan.h>

#include <brigade/core/error.h>
#include <brigade/dist/buckets/payload.h>
#include <brigade/dist/observers/norm_meter.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace brigade::test::bench_replay_test {

using namespace brigade::lab::bench;
using nlohmann::json;

// One step of a rank that starts `late` us late: forward 10, backward 100, and a wait of 20 us.
void add_step(json& events, int rank, double late, double second_launch) {
  const auto slice = [&](const char* name, double begin, double end) {
    events.push_back(
        {{"name", name}, {"ph", "B"}, {"pid", rank}, {"tid", 0}, {"ts", late + begin}, {"args", {{"iteration", 1}}}});
    events.push_back({{"name", name}, {"ph", "E"}, {"pid", rank}, {"tid", 0}, {"ts", late + end}});
  };
  slice("forward", 0, 10);
  slice("backward", 10, 110);
  slice("wait for collectives", 110, 130);
  const auto bucket = [&](int number, double begin, double end, int bytes) {
    const std::string name = "bucket " + std::to_string(number);
    events.push_back({{"name", name},
                      {"ph", "b"},
                      {"cat", "collective"},
                      {"pid", rank},
                      {"id", number},
                      {"ts", late + begin},
                      {"args", {{"iteration", 1}, {"bucket", number}, {"bytes", bytes}}}});
    events.push_back(
        {{"name", name}, {"ph", "e"}, {"cat", "collective"}, {"pid", rank}, {"id", number}, {"ts", late + end}});
  };
  bucket(0, 40, 60, 400);
  bucket(1, second_launch, 125, 800);
  for (const auto& [name, at] : std::initializer_list<std::pair<const char*, double>>{{"b", 40}, {"a", second_launch}})
    events.push_back(
        {{"name", name}, {"ph", "i"}, {"pid", rank}, {"tid", 1}, {"ts", late + at}, {"args", {{"iteration", 1}}}});
}

json two_ranks() {
  json events = json::array();
  add_step(events, 0, 0, 105);
  add_step(events, 1, 7, 109);
  return {
      {"traceEvents", events},
      {"brigade",
       {{"module", "Net"},
        {"backend", "gloo"},
        {"ranks", 2},
        {"parameters",
         {{{"name", "a"}, {"numel", 160}, {"dtype", "float32"}}, {{"name", "b"}, {"numel", 32}, {"dtype", "float32"}}}},
        {"buckets", {{{"dtype", "float32"}}, {{"dtype", "float32"}}}},
        {"ready_order", {1, 0}}}}};
}

TEST_CASE("a plan holds the launches of a trace, from the begin of each rank's step") {
  const ReplayPlan plan = plan_of(lab::trace_of_text(two_ranks().dump()));
  REQUIRE(plan.ranks.size() == 2);
  REQUIRE(plan.ranks[1].size() == 1);
  const ReplayStep& step = plan.ranks[1][0];
  CHECK(plan.ranks[0][0].late_us == 0);
  CHECK(step.late_us == doctest::Approx(7));
  CHECK(step.compute_us == doctest::Approx(110));
  CHECK(step.recorded_us == doctest::Approx(130));
  CHECK(step.rest_us == doctest::Approx(5));
  REQUIRE(step.buckets.size() == 2);
  CHECK(step.buckets[0].at_us == doctest::Approx(40));
  CHECK(step.buckets[1].at_us == doctest::Approx(109));
  CHECK(step.buckets[1].bytes == 800);
  CHECK(step.recorded.hidden_ms == doctest::Approx(0.021));  // 20 us of the first bucket, 1 us of the second
  CHECK(step.recorded.on_the_way_ms == doctest::Approx(0.036));
  const std::vector<ReplayStep> again = steps_from(to_json(plan.ranks[1]));
  CHECK(again[0].buckets[1].at_us == step.buckets[1].at_us);
  CHECK(again[0].ready_us == step.ready_us);
}

TEST_CASE("a re-cut launches a bucket when its last gradient is ready") {
  const ReplayPlan cut = recut(plan_of(lab::trace_of_text(two_ranks().dump())), 1 << 20);
  const ReplayStep& step = cut.ranks[0][0];
  REQUIRE(step.buckets.size() == 1);
  CHECK(step.buckets[0].at_us == doctest::Approx(105));
  CHECK(step.buckets[0].bytes == 4 * (160 + 32 + dist::TailLayout(kFloat32, 2, 2, dist::words_of_diagnosis()).numel));
  const ReplayPlan small = recut(cut, 128);
  REQUIRE(small.ranks[1][0].buckets.size() == 2);
  CHECK(small.ranks[1][0].buckets[0].at_us == doctest::Approx(40));
  CHECK(small.ranks[1][0].buckets[1].at_us == doctest::Approx(109));
}

TEST_CASE("a trace without a step on all ranks is no plan") {
  json trace = two_ranks();
  trace["brigade"]["ranks"] = 3;
  CHECK_THROWS_WITH_AS(plan_of(lab::trace_of_text(trace.dump())), doctest::Contains("nothing to replay"), ValueError);
}

}  // namespace brigade::test::bench_replay_test
