// Traces of made-up timelines: exact events, which no viewer drops.
#include "trace_rules.h"

#include <brigade/dist/timeline/trace_events.h>

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

namespace brigade::test::trace_test {
using nlohmann::json;

const std::vector<std::string> kParameters = {"a \"quoted\"", "b"};

// Two buckets in flight at the same time. No time is a whole number of microseconds.
dist::RoundEvents round_of(int64_t start) {
  dist::RoundEvents round;
  round.round = 3;
  round.backward = {"train.cpp", 12};
  round.forward_began = start + 1;
  round.began = start + 100123;
  round.compute_ended = start + 200456;
  round.ended = start + 300789;
  round.ready = {start + 149999, start + 120007};
  dist::BucketEvents first;
  first.parameters = {1};
  first.bytes = 40004;
  first.filled = start + 120007;
  first.launched = start + 150001;
  first.arrived = start + 160002;
  first.reduced = start + 180004;
  first.finished = start + 250000;
  first.wait_began = start + 240000;
  first.wait_ended = start + 250000;
  dist::BucketEvents second = first;
  second.parameters = {0};
  second.launched = start + 170000;
  second.arrived = start + 170010;
  second.reduced = start + 290000;
  second.finished = second.wait_ended = start + 290005;
  round.buckets = {first, second};
  return round;
}

// BRIGADE_MADE_UP_TRACES names a folder for them; tests/perfetto shows them to Perfetto.
json trace_of(const std::vector<dist::RankTimeline>& ranks, const char* backend = "shm") {
  json trace{{"traceEvents", json::parse(dist::trace_events(ranks, kParameters, backend))}};
  static int number = 0;
  if (const char* folder = std::getenv("BRIGADE_MADE_UP_TRACES"))
    std::ofstream(fmt::format("{}/made-up-{}.json", folder, ++number)) << trace;
  return trace;
}

// The same round on a device: the host goes on before the device is done.
dist::RoundEvents device_round_of(int64_t start) {
  dist::RoundEvents round = round_of(start);
  round.device_began = start + 130000;
  round.device_compute_ended = start + 400000;
  for (dist::BucketEvents& bucket : round.buckets)
    bucket.reduced = 0;
  round.buckets[0].device_began = start + 300000;
  round.buckets[0].device_ended = start + 350000;
  round.buckets[1].device_began = start + 350000;
  round.buckets[1].device_ended = start + 450004;
  return round;
}

// "name begin end", without the arguments.
std::vector<std::string> in_words(const std::vector<test::ImportedSlice>& slices) {
  std::vector<std::string> words;
  for (const test::ImportedSlice& slice : slices)
    words.push_back(fmt::format("{} {} {}", slice.name, slice.begin, slice.end));
  return words;
}

TEST_CASE("a made-up timeline gives an exact trace") {
  dist::RankTimeline rank{"clock", {round_of(7000000)}};
  rank.rounds[0].buckets.pop_back();
  rank.rounds[0].non_finite = "mul at net.cpp:3";
  rank.rounds[0].steps = {{.optimizer = "SGD", .number = 2, .where = Place("train.cpp", 13), .at = 7310124},
                          {.optimizer = "Adam",
                           .number = 7,
                           .where = Place("train.cpp", 14),
                           .at = 7320124,
                           .loss_scale = 512,
                           .found_inf = true,
                           .skipped = true}};
  CHECK(json::parse(dist::trace_events({&rank, 1}, kParameters, "threads")) == json::parse(R"json([
    {"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "rank 0"}},
    {"name": "thread_name", "ph": "M", "pid": 0, "tid": 100000, "args": {"name": "compute"}},
    {"name": "thread_name", "ph": "M", "pid": 0, "tid": 200000, "args": {"name": "gradients ready"}},
    {"name": "thread_name", "ph": "M", "pid": 0, "tid": 300000, "args": {"name": "optimizer steps"}},
    {"name": "forward", "ph": "B", "pid": 0, "tid": 100000, "ts": 0.000, "args": {"iteration": 3, "backward": "train.cpp:12"}},
    {"name": "forward", "ph": "E", "pid": 0, "tid": 100000, "ts": 100.122},
    {"name": "backward", "ph": "B", "pid": 0, "tid": 100000, "ts": 100.122,
     "args": {"iteration": 3, "backward": "train.cpp:12", "non_finite": "mul at net.cpp:3"}},
    {"name": "backward", "ph": "E", "pid": 0, "tid": 100000, "ts": 200.455},
    {"name": "wait for collectives", "ph": "B", "pid": 0, "tid": 100000, "ts": 200.455,
     "args": {"iteration": 3, "backward": "train.cpp:12", "overlap": 0.5046, "rebuilt": false}},
    {"name": "wait for collectives", "ph": "E", "pid": 0, "tid": 100000, "ts": 300.788},
    {"name": "bucket 0", "ph": "b", "pid": 0, "tid": 100000, "cat": "collective", "id2": {"local": "0x1"}, "ts": 150.000,
     "args": {"iteration": 3, "backward": "train.cpp:12", "bucket": 0, "bytes": 40004, "algorithm": "all_reduce over threads",
              "arrival_known": true, "on_device": false, "filled_us": 120.006, "wait_began_us": 239.999,
              "wait_ended_us": 249.999, "parameters": ["b"]}},
    {"name": "wait for peers", "ph": "b", "pid": 0, "tid": 100000, "cat": "collective", "id2": {"local": "0x1"}, "ts": 150.000,
     "args": {"iteration": 3, "backward": "train.cpp:12", "bucket": 0}},
    {"name": "wait for peers", "ph": "e", "pid": 0, "tid": 100000, "cat": "collective", "id2": {"local": "0x1"}, "ts": 160.001,
     "args": {}},
    {"name": "reduce", "ph": "b", "pid": 0, "tid": 100000, "cat": "collective", "id2": {"local": "0x1"}, "ts": 160.001,
     "args": {"iteration": 3, "backward": "train.cpp:12", "bucket": 0, "bytes": 40004, "algbw_GBps": 2.0,
              "busbw_GBps": 0.0}},
    {"name": "reduce", "ph": "e", "pid": 0, "tid": 100000, "cat": "collective", "id2": {"local": "0x1"}, "ts": 180.003, "args": {}},
    {"name": "bucket 0", "ph": "e", "pid": 0, "tid": 100000, "cat": "collective", "id2": {"local": "0x1"}, "ts": 249.999,
     "args": {}},
    {"name": "SGD.step()", "ph": "i", "pid": 0, "s": "t", "tid": 300000, "ts": 310.123,
     "args": {
    "iteration" : 3, "backward" : "train.cpp:12", "optimizer" : "SGD", "step" : 2, "where" : "train.cpp:13"}
},
    {"name": "Adam.step() skipped", "ph": "i", "pid": 0, "s": "t", "tid": 300000, "ts": 320.123,
     "args": {"iteration": 3, "backward": "train.cpp:12", "optimizer": "Adam", "step": 7, "where": "train.cpp:14",
              "loss_scale": 512, "found_inf": true, "skipped": true}},
    {"name": "b", "ph": "i", "pid": 0, "s": "t", "tid": 200000, "ts": 120.006,
     "args": {"iteration": 3, "backward": "train.cpp:12"}},
    {"name": "a \"quoted\"", "ph": "i", "pid": 0, "s": "t", "tid": 200000, "ts": 149.998,
     "args": {"iteration": 3, "backward": "train.cpp:12"}}
  ])json"));
}

TEST_CASE("collectives that overlap are kept apart, and no slice is dropped") {
  // Rounds that follow each other at once, at times that a floating-point number of microseconds rounds.
  std::vector<dist::RankTimeline> ranks(3);
  for (dist::RankTimeline& rank : ranks) {
    for (int64_t round = 0; round < 50; ++round)
      rank.rounds.push_back(round_of(123456789 + round * 300788));
  }
  const test::ImportedTrace trace = test::import_trace(trace_of(ranks));
  CHECK(trace.problems == std::vector<std::string>{});
  CHECK(trace.tracks.size() == 3 * (2 + 2));
  for (const auto& [track, slices] : trace.tracks) {
    CAPTURE(track);
    CHECK(slices.size() == (track.find("lane 2") != track.npos ? 2 : 3) * 50);
  }
  using Words = std::vector<std::string>;
  const auto first = [](std::vector<test::ImportedSlice> slices) {
    slices.resize(3);
    return in_words(slices);
  };
  CHECK(first(trace.tracks.at("rank 1, collective 0x1")) ==
        Words{"wait for peers 150000 160001", "reduce 160001 180003", "bucket 0 150000 249999"});
  CHECK(first(trace.tracks.at("rank 1, collective 0x2")) ==
        Words{"wait for peers 169999 170009", "reduce 170009 289999", "bucket 1 169999 290004"});
}

TEST_CASE("bandwidth is that of the reducing part, on the bus for the number of ranks") {
  std::vector<dist::RankTimeline> ranks(4);
  for (dist::RankTimeline& rank : ranks)
    rank.rounds = {round_of(1000)};
  const test::ImportedTrace trace = test::import_trace(trace_of(ranks));
  const json& reduce = trace.tracks.at("rank 0, collective 0x1").at(1).arguments;
  CHECK(reduce.at("algbw_GBps").get<double>() == doctest::Approx(40004.0 / 20002.0));
  CHECK(reduce.at("busbw_GBps").get<double>() == doctest::Approx(1.5 * 40004.0 / 20002.0));
}

TEST_CASE("where the arrival of the peers is not known, a bucket has no phases and no bandwidth") {
  dist::RankTimeline rank{"clock", {round_of(1000)}};
  for (dist::BucketEvents& bucket : rank.rounds[0].buckets)
    bucket.arrived = 0;
  const json trace = trace_of({rank, rank, rank}, "gloo");
  CHECK(trace.dump().find("busbw") == std::string::npos);
  const test::ImportedTrace imported = test::import_trace(trace);
  CHECK(imported.problems == std::vector<std::string>{});
  const std::vector<test::ImportedSlice>& bucket = imported.tracks.at("rank 0, collective 0x1");
  CHECK(in_words(bucket) == std::vector<std::string>{"bucket 0 150000 249999"});
  CHECK(bucket[0].arguments.at("arrival_known") == false);
  CHECK(bucket[0].arguments.at("algorithm") == "all_reduce over gloo");
}

TEST_CASE("a rank with another clock is moved to where its collectives end with those of rank 0") {
  dist::RankTimeline here{"here", {round_of(1000000), round_of(2000000)}};
  dist::RankTimeline there{"there", {round_of(9000000), round_of(10000000)}};
  here.rounds[1].round = there.rounds[1].round = 4;
  const test::ImportedTrace trace = test::import_trace(trace_of({here, there}));
  CHECK(trace.problems == std::vector<std::string>{});
  CHECK(in_words(trace.tracks.at("rank 1, lane 100001")) == in_words(trace.tracks.at("rank 0, lane 100000")));
  CHECK(in_words(trace.tracks.at("rank 1, collective 0x2")) == in_words(trace.tracks.at("rank 0, collective 0x2")));
}

TEST_CASE("moments that clocks put in the wrong order do not break the nesting") {
  dist::RankTimeline rank{"clock", {round_of(1000)}};
  rank.rounds[0].buckets[0].arrived = rank.rounds[0].buckets[0].launched - 5000;
  rank.rounds[0].buckets[1].arrived = rank.rounds[0].buckets[1].finished + 1;
  rank.rounds[0].buckets[1].reduced = rank.rounds[0].buckets[1].finished + 5000;
  const test::ImportedTrace trace = test::import_trace(trace_of({rank}));
  CHECK(trace.problems == std::vector<std::string>{});
  CHECK(in_words(trace.tracks.at("rank 0, collective 0x1"))[0] == "wait for peers 150000 150000");
}

TEST_CASE("the rules find what viewers drop") {
  struct Case {
    const char* events;
    std::vector<std::string> problems;
  };
  for (
      const Case& c : std::vector<Case>{
          {R"({"name": "x", "ph": "X", "pid": 0, "tid": 8, "ts": 1, "dur": 5},
               {"name": "y", "ph": "X", "pid": 0, "tid": 8, "ts": 3, "dur": 5},
               {"name": "z", "ph": "X", "pid": 0, "tid": 8, "ts": 6, "dur": 5})",
           {"rank 0, lane 8: 'y' at 3000 ns: dropped: it overlaps 'x'"}},
          // Neighbours in decimals; the binary number next to 1.003 is below it.
          {R"({"name": "x", "ph": "X", "pid": 0, "tid": 7, "ts": 0.964, "dur": 0.039},
               {"name": "y", "ph": "X", "pid": 0, "tid": 7, "ts": 1.003, "dur": 1})",
           {"rank 0, lane 7: 'y' at 1002 ns: dropped: it overlaps 'x'"}},
          {R"({"name": "x", "ph": "B", "pid": 0, "tid": 7, "ts": 1, "args": {}})",
           {"rank 0, lane 7: 'x' at 1000 ns: it never ends"}},
          {R"({"name": "x", "ph": "b", "pid": 0, "tid": 7, "cat": "c", "id2": {"local": "0x1"}, "ts": 1},
               {"name": "y", "ph": "b", "pid": 0, "tid": 7, "cat": "c", "id2": {"local": "0x1"}, "ts": 2},
               {"name": "x", "ph": "e", "pid": 0, "tid": 7, "cat": "c", "id2": {"local": "0x1"}, "ts": 3},
               {"name": "y", "ph": "e", "pid": 0, "tid": 7, "cat": "c", "id2": {"local": "0x1"}, "ts": 4},
               {"name": "x", "ph": "e", "pid": 0, "tid": 7, "cat": "c", "id2": {"local": "0x1"}, "ts": 5})",
           {"rank 0, c 0x1: 'x' at 3000 ns: it ends and is not what began last"}},
          {R"({"name": "x", "ph": "i", "pid": 1, "tid": 0, "ts": 1}, {"name": "y", "ph": "i", "pid": 0, "tid": 7, "ts": 1})",
           {"tid 0 is the number of a process, and its lane that one's"}},
          {R"({"name": "x", "ph": "b", "pid": 0, "tid": 7, "cat": "c", "id": "0x1", "ts": 1},
               {"name": "x", "ph": "e", "pid": 0, "tid": 7, "cat": "c", "id": "0x1", "ts": 2})",
           {"id \"0x1\" is one of the whole trace, and its track no rank's",
            "id \"0x1\" is one of the whole trace, and its track no rank's"}},
          {R"({"name": "x", "ph": "B", "pid": 0, "tid": 7, "ts": 2},
               {"name": "x", "ph": "E", "pid": 0, "tid": 7, "ts": 1})",
           {"rank 0, lane 7: not in order of time",
            "rank 0, lane 7: 'x' at 1000 ns: it ends and is not what began last",
            "rank 0, lane 7: 'x' at 2000 ns: it never ends"}}}) {
    CAPTURE(c.events);
    CHECK(test::import_trace(json::parse(fmt::format(R"({{"traceEvents": [{}]}})", c.events))).problems == c.problems);
  }
}

TEST_CASE("what a device runs has a lane and tracks of its own, and the hidden share is that of its times") {
  const dist::RoundEvents round = device_round_of(1000);
  CHECK(round.communication() == 150004);
  CHECK(round.hidden() == 100000);
  dist::RoundEvents next = device_round_of(401000);  // read by a clock that is a little off
  next.device_began = round.device_compute_ended - 700;
  const test::ImportedTrace imported = test::import_trace(trace_of({{"clock", {round, next}}}, "nccl"));
  for (const std::string& problem : imported.problems)
    CHECK(problem == "");
  std::vector<std::string> on_device;
  for (const auto& [track, slices] : imported.tracks) {
    for (const std::string& slice : in_words(slices)) {
      CHECK(slice.find("reduce") == std::string::npos);
      if (slice.find("on the device") != std::string::npos) on_device.push_back(slice);
    }
  }
  std::ranges::sort(on_device);
  // From the beginning of the first forward, at 1001 ns.
  CHECK(on_device ==
        std::vector<std::string>{"backward on the device 129999 399999", "backward on the device 399999 799999",
                                 "bucket 0 on the device 299999 349999", "bucket 0 on the device 699999 749999",
                                 "bucket 1 on the device 349999 450003", "bucket 1 on the device 749999 850003"});
}

}  // namespace brigade::test::trace_test
