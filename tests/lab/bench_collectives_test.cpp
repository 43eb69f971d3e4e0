// brigade bench collectives: how bytes are counted, wrong results, and the columns of nccl-tests and OSU.
#include <brigade/lab/bench/collectives/collective.h>
#include <brigade/lab/bench/collectives/tables.h>

#include <brigade/lab/bench/rounds.h>

#include "falsifying_group.h"
#include "program.h"

#include <brigade/core/error.h>
#include <brigade/dist/groups/threads/run_threads.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <mutex>

namespace brigade::test::bench_collectives_test {

using namespace brigade::lab::bench;
using doctest::Approx;
using nlohmann::json;

// A measurement of 4,000 bytes in 2 us on each of 4 ranks.
Measured measured(const std::string& collective) {
  const json key{{"collective", collective},
                 {"backend", "shm"},
                 {"ranks", 4},
                 {"dtype", "float32"},
                 {"op", "sum"},
                 {"bytes", 4000},
                 {"count", 1000},
                 {"in_place", true},
                 {"memory", "group"},
                 {"in_flight", 1}};
  return {std::make_shared<json>(key), {{2, 2, 2}, {2, 2, 2}, {2, 2, 2}, {2, 2, 2}}};
}

json arguments_for(const std::vector<std::string>& collectives) {
  return {{"backends", {"threads"}},
          {"collectives", collectives},
          {"sizes", {8, 1000}},
          {"dtypes", {"float32", "int32"}},
          {"ops", {"sum", "max"}},
          {"memory", {"group", "plain"}},
          {"place", {"out", "in"}},
          {"in_flight", {1, 3}},
          {"family", "bandwidth"},
          {"progress", 0},
          {"calls", 2},
          {"check", "every"},
          {"plain_loops", true},
          {"limits", to_json(RoundLimits{.least = 1, .most = 1, .warm_up = 0})}};
}

// The rows of all ranks; with `falsify`, the groups corrupt their results.
json rows_of(const std::vector<std::string>& collectives, bool falsify) {
  std::mutex lock;
  json rows = json::array();
  dist::run_threads(3, [&](const dist::ProcessGroupPtr& group) {
    const dist::ProcessGroupPtr used = falsify ? std::make_shared<test::FalsifyingGroup>(group) : group;
    const json mine = json::parse(collectives_job(used, arguments_for(collectives).dump()));
    const std::lock_guard guard(lock);
    rows.insert(rows.end(), mine.begin(), mine.end());
  });
  return rows;
}

TEST_CASE("algbw is the size by the time, and busbw that by the factor of nccl-tests") {
  // 4,000 bytes in 2 us are 2 GB/s; bus bandwidth factors for 4 ranks.
  for (const auto& [name, factor] : std::vector<std::pair<std::string, double>>{{"all_reduce", 2 * 3.0 / 4},
                                                                                {"all_gather", 3.0 / 4},
                                                                                {"reduce_scatter", 3.0 / 4},
                                                                                {"broadcast", 1},
                                                                                {"barrier", 0}}) {
    CAPTURE(name);
    CHECK(algbw_of(measured(name)) == Approx(2));
    CHECK(busbw_of(measured(name)) == Approx(2 * factor));
    CHECK(find_collective(name).bus_factor(1) == Approx(name == "broadcast" ? 1 : 0));
  }
  CHECK(all_collectives().size() == 5);
  CHECK_THROWS_WITH_AS(find_collective("all_to_none"),
                       doctest::Contains("known are all_gather, all_reduce, barrier, broadcast"), ValueError);
}

TEST_CASE("a size counts the larger tensor; the count is of the smaller one") {
  const Collective& reduce = find_collective("all_reduce");
  const Collective& gather = find_collective("all_gather");
  CHECK(reduce.count_of(1000, kFloat32, 4) == 250);
  CHECK(reduce.bytes_of(250, kFloat32, 4) == 1000);
  CHECK(gather.count_of(1000, kFloat32, 4) == 62);
  CHECK(gather.bytes_of(62, kFloat32, 4) == 992);
  CHECK(gather.count_of(4, kFloat32, 4) == 1);
  CHECK(gather.bytes_of(1, kFloat32, 4) == 16);
  CHECK(find_collective("reduce_scatter").count_of(1000, kFloat16, 4) == 125);
  CHECK(find_collective("barrier").count_of(1000, kFloat32, 4) == 0);
}

TEST_CASE("nothing is wrong in any way of calling any collective") {
  const std::vector<std::string> names{"all_gather", "all_reduce", "barrier", "broadcast", "reduce_scatter"};
  const json rows = rows_of(names, false);
  // Per rank: 2 sizes x 2 dtypes x 2 kinds of memory x 2 places x 2 numbers of calls, with 2 operations for two of the
  // four collectives; one barrier; plain loops with each in-place all_reduce.
  CHECK(rows.size() == 3 * (2 * 2 * 2 * 2 * 2 * (4 + 2) + 1 + 2 * 2 * 2 * 2 * 2));
  CHECK(std::ranges::count_if(rows, [](const json& row) { return row.at("key").contains("plain_loops"); }) == 3 * 32);
  for (const json& row : rows) {
    CAPTURE(row.dump());
    CHECK(row.at("wrong") == 0);
    CHECK(row.at("us").size() == 1);
    CHECK(row.at("us")[0] > 0);
  }
}

TEST_CASE("a falsified result is counted, for every collective with data") {
  for (const std::string name : {"all_gather", "all_reduce", "broadcast", "reduce_scatter"}) {
    CAPTURE(name);
    for (const json& row : rows_of({name}, true)) {
      CAPTURE(row.dump());
      // The last element of each call in the single round.
      CHECK(row.at("wrong") == row.at("key").at("in_flight"));
    }
  }
}

TEST_CASE("hidden communication as OSU defines it") {
  Measured one = measured("all_reduce");
  one.us = {{130, 100, 250}};
  one.compute_us = {{100, 100, 100}};
  one.comm_us = {{100, 100, 100}};
  CHECK(overlap_of(one) == Samples{{70, 100, 0}});
  const OverRanks ranks = over_ranks({{1, 3}, {5, 5}, {9, 9}});
  CHECK(ranks.average == Approx(16.0 / 3));
  CHECK(ranks.least == 2);
  CHECK(ranks.most == 9);
}

TEST_CASE("the tables have the columns of nccl-tests, and of OSU") {
  Measured in = measured("all_reduce"), out = measured("all_reduce");
  json key = *out.key;
  key["in_place"] = false;
  out.key = std::make_shared<json>(key);
  out.wrong = 7;
  const std::string bandwidth = tables({out, in}, "bandwidth");
  for (const char* column :
       {"size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "out-of-place", "in-place"})
    CHECK_MESSAGE(test::contains(bandwidth, column), column);
  // One line for out of place and in place.
  CHECK(test::contains(
      bandwidth,
      "4000          1000   float32     sum    -1         2.00    2.00    3.00      7    0.0        2.00    2.00    3.00      0    0.0\n"));
  CHECK(test::contains(tables({in}, "latency"), "Avg Latency(us) Min Latency(us) Max Latency(us)"));
  in.compute_us = in.comm_us = in.us;
  CHECK(test::contains(tables({in}, "overlap"), "Pure Comm.(us)"));
  const Plot plot = plot_of({out, in}, "bandwidth");
  REQUIRE(plot.series.size() == 2);
  CHECK(plot.series[0].points.at(0).y == Approx(3));
}

TEST_CASE("plain loops stand beside all_reduce where ranks share memory") {
  for (const std::string backend : {"threads", "shm"}) {
    const auto run =
        test::run_program_apart("bench allreduce --plain-loops --sizes 1K --rounds 2 --json - --backends " + backend);
    CAPTURE(run.output);
    REQUIRE(run.status == 0);
    const json rows = json::parse(run.output).at("results");
    const bool beside = std::ranges::all_of(rows, [](const json& row) {
      return row.contains("x_plain_loops") == (row.at("in_place") && !row.contains("plain_loops"));
    });
    CHECK(beside);
    CHECK(std::ranges::count_if(rows, [](const json& row) { return row.contains("plain_loops"); }) == 2);
  }
  CHECK(test::run_program("bench allreduce --plain-loops --backends gloo").status == 2);
  CHECK(test::run_program("bench allreduce --plain-loops --place out").status == 2);
  CHECK(test::run_program("bench collectives --plain-loops --collectives broadcast").status == 2);
}

TEST_CASE("a size that memory cannot hold, and an operation that a dtype has not, are wrong usage before ranks start") {
  CHECK(test::run_program("bench collectives --sizes 900G --ranks 2").status == 2);
  CHECK(test::run_program("bench collectives --op avg --dtypes float32,int32").status == 2);
}

}  // namespace brigade::test::bench_collectives_test
