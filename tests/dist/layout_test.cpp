#include <brigade/dist/bucket.h>
#include <brigade/dist/diagnosis/report.h>
#include <brigade/dist/sampler.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

using namespace brigade;

TEST_CASE("buckets close when they reach their limit, the first one early, one list for each dtype") {
  const std::vector<dist::ParameterInfo> parameters{{100, kFloat32}, {100, kFloat32}, {100, kFloat64},
                                                    {100, kFloat32}, {100, kFloat64}, {100, kFloat32}};
  const std::vector<uint32_t> order{5, 4, 3, 2, 1, 0};
  const auto layouts = dist::assign_buckets(parameters, order, {.first_bytes = 400, .cap_bytes = 800});
  // float32: {5} fills the first, {3, 1} the second, {0} is left; float64: {4} fills the first, {2} the second.
  REQUIRE(layouts.size() == 5);
  CHECK(layouts[0].parameters == std::vector<uint32_t>{5});
  CHECK(layouts[1].parameters == std::vector<uint32_t>{4});
  CHECK(layouts[2].parameters == std::vector<uint32_t>{2});
  CHECK(layouts[3].parameters == std::vector<uint32_t>{3, 1});
  CHECK(layouts[3].offsets == std::vector<int64_t>{0, 112});  // 100 floats take 7 cache lines
  CHECK(layouts[3].gradient_numel == 224);
  CHECK(layouts[4].parameters == std::vector<uint32_t>{0});
  CHECK(layouts[1].dtype == kFloat64);
  CHECK(dist::assign_buckets(parameters, order, {.first_bytes = 1 << 20, .cap_bytes = 1 << 20}).size() == 2);
  CHECK(dist::assign_buckets({}, {}, {}).empty());
}

TEST_CASE("the sampler shares out every example, and the union of a batch does not depend on the number of ranks") {
  for (const bool drop_last : {false, true}) {
    for (const int world : {1, 2, 3, 4}) {
      std::vector<int64_t> all;
      for (int rank = 0; rank < world; ++rank) {
        dist::DistributedSampler sampler(103, rank, world, {.seed = 7, .drop_last = drop_last});
        sampler.set_epoch(2);
        const auto mine = sampler.indices();
        CHECK(static_cast<int64_t>(mine.size()) == (drop_last ? 103 / world : (103 + world - 1) / world));
        all.insert(all.end(), mine.begin(), mine.end());
      }
      std::sort(all.begin(), all.end());
      const auto unique = std::unique(all.begin(), all.end());
      CHECK(unique - all.begin() == (drop_last ? 103 / world * world : 103));
    }
  }
  const auto batch = [](int world) {
    std::vector<int64_t> chosen;
    for (int rank = 0; rank < world; ++rank) {
      const auto mine = dist::DistributedSampler(96, rank, world, {.seed = 1}).indices();
      chosen.insert(chosen.end(), mine.begin(), mine.begin() + 24 / world);
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  };
  CHECK(batch(1) == batch(2));
  CHECK(batch(1) == batch(4));
  dist::DistributedSampler sampler(10, 0, 1);
  const auto first = sampler.indices();
  sampler.set_epoch(1);
  CHECK(sampler.indices() != first);
  CHECK(dist::DistributedSampler(4, 0, 2, {.shuffle = false}).indices() == std::vector<int64_t>{0, 2});
  CHECK(dist::DistributedSampler(1, 2, 3).indices().size() == 1);
  CHECK_THROWS_WITH_AS(dist::DistributedSampler(4, 2, 2), "Invalid rank 2, rank should be in the interval [0, 1]",
                       ValueError);
}

TEST_CASE("reports go through text unharmed, and broken ones are refused") {
  dist::RankReport report;
  report.rank = 3;
  report.round = 17;
  report.backward = "a.cpp:4";
  report.failure = "line one\nline two";
  report.ready = {true, false, true};
  dist::Cause cause;
  cause.kind = dist::CauseKind::Detached;
  cause.op = "detach";
  cause.file = "x/y.cpp";
  cause.line = 12;
  cause.module = "encoder.0";
  cause.text = "cut, at: x/y.cpp:12";
  report.causes.emplace(1, cause);
  const dist::RankReport back = dist::decode_report(dist::encode(report));
  CHECK(back.rank == 3);
  CHECK(back.round == 17);
  CHECK(back.failure == "line one line two");
  CHECK(back.ready == report.ready);
  CHECK(back.causes.at(1).same_as(cause));
  CHECK(back.causes.at(1).module == "encoder.0");
  CHECK_THROWS_AS(dist::decode_report("3\n17\n"), DistError);
}
