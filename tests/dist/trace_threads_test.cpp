// The trace of a real run: no viewer drops any part of it, and its phases are those of the collectives.
#include "mechanisms_net.h"
#include "on_ranks.h"
#include "trace_rules.h"

#include <brigade/dist/ddp/trace.h>

#include <algorithm>

namespace brigade::test::trace_threads_test {
using nlohmann::json;
using test::mechanisms::Net;

constexpr size_t kRounds = 4;

// The trace of `ranks` ranks that train with a bucket for each parameter.
json trace_of_a_run(int ranks) {
  const std::vector<test::Rank> outcome =
      test::run_ranks("threads", ranks, [](dist::ProcessGroupPtr group) -> std::string {
        Net net;
        dist::DistributedDataParallel<Net> ddp(net, group, {.bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6});
        ddp.timeline().keep(kRounds);
        for (int step = 0; step < 6; ++step)
          test::mechanisms::loss_of(ddp(test::mechanisms::batch_of(group->rank(), step))).backward();
        return dist::trace_json(ddp);
      });
  for (const test::Rank& rank : outcome) {
    REQUIRE_MESSAGE(rank.error == "", rank.text);
    CHECK(rank.result == outcome[0].result);
  }
  return json::parse(outcome[0].result);
}

// (begin, end) of a name's slices on a track.
std::vector<std::pair<int64_t, int64_t>> times_of(const std::vector<test::ImportedSlice>& slices,
                                                  const std::string& name) {
  std::vector<std::pair<int64_t, int64_t>> times;
  for (const test::ImportedSlice& slice : slices) {
    if (slice.name == name) times.emplace_back(slice.begin, slice.end);
  }
  return times;
}

TEST_CASE("of a run of two ranks on threads nothing is dropped, and the ranks agree on when all had arrived") {
  const json file = trace_of_a_run(2);
  const test::ImportedTrace trace = test::import_trace(file);
  CHECK(trace.problems == std::vector<std::string>{});
  const size_t buckets = file.at("brigade").at("buckets").size();
  REQUIRE(buckets == 6);
  CHECK(trace.tracks.size() == 2 * (2 + buckets));
  for (const int rank : {0, 1}) {
    CHECK(trace.tracks.at(fmt::format("rank {}, lane {}", rank, 100'000 + rank)).size() == 3 * kRounds);
    CHECK(trace.tracks.at(fmt::format("rank {}, lane {}", rank, 200'000 + rank)).size() == 6 * kRounds);
  }
  for (size_t b = 0; b < buckets; ++b) {
    CAPTURE(b);
    const std::vector<test::ImportedSlice>* ranks[] = {
        &trace.tracks.at(fmt::format("rank 0, collective {:#x}", b + 1)),
        &trace.tracks.at(fmt::format("rank 1, collective {:#x}", b + 1))};
    const std::string name = fmt::format("bucket {}", b);
    for (size_t round = 0; round < kRounds; ++round) {
      CAPTURE(round);
      int64_t launched_last = 0;
      for (const auto* slices : ranks)
        launched_last = std::max(launched_last, times_of(*slices, name).at(round).first);
      // The importer cuts each moment off at nanoseconds, which may make it one less.
      const int64_t arrived = times_of(*ranks[0], "reduce").at(round).first;
      CHECK(arrived + 1 >= launched_last);
      for (const auto* slices : ranks) {
        const auto whole = times_of(*slices, name).at(round);
        const auto waiting = times_of(*slices, "wait for peers").at(round);
        const auto reducing = times_of(*slices, "reduce").at(round);
        CHECK(waiting.first == whole.first);
        CHECK(waiting.second == arrived);
        CHECK(reducing.first == arrived);
        CHECK(reducing.second == times_of(*ranks[0], "reduce").at(round).second);
        CHECK(reducing.second <= whole.second);
      }
    }
    for (const auto* slices : ranks) {
      for (const test::ImportedSlice& slice : *slices) {
        if (slice.name != "reduce") continue;
        const auto seconds = static_cast<double>(slice.end - slice.begin) * 1e-9;
        const double bytes = slice.arguments.at("bytes");
        const double bandwidth = bytes / seconds * 1e-9;
        CHECK(slice.arguments.at("algbw_GBps").get<double>() / bandwidth == doctest::Approx(1).epsilon(0.01));
      }
    }
  }
}

}  // namespace brigade::test::trace_threads_test
