#include <brigade/dist/buckets/bucket.h>
#include <brigade/dist/ddp/sampler.h>
#include <brigade/dist/diagnosis/report.h>
#include <brigade/dist/diagnosis/wire.h>
#include <brigade/dist/reducer/reducer.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <algorithm>

namespace brigade::test::layout_test {

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
  report.backward = {"a.cpp", 4};
  report.failure = "line one\nline two";
  report.ready = {true, false, true};
  report.reached = {false, false, true};
  dist::Cause cause;
  cause.kind = dist::CauseKind::Detached;
  cause.op = "detach";
  cause.place = {"x/y.cpp", 12};
  cause.module = "encoder.0";
  cause.text = "cut, at: x/y.cpp:12";
  report.causes.emplace(1, cause);
  const dist::RankReport back = dist::decoded<dist::RankReport>(dist::to_text(report));
  CHECK(back.rank == 3);
  CHECK(back.round == 17);
  CHECK(back.failure == report.failure);
  CHECK(dist::rank_failed({{back}}).message == "Rank 3 failed in its backward at a.cpp:4.\nwhy: line one line two.");
  CHECK(to_string(dist::rank_failed({{back}}).cause.place) == "a.cpp:4");
  CHECK(back.ready == report.ready);
  CHECK(back.reached == report.reached);
  CHECK(back.causes.at(1).same_as(cause));
  CHECK(back.causes.at(1).module == "encoder.0");
  CHECK_THROWS_AS(dist::decoded<dist::RankReport>("3\n17\n"), DistError);
}

TEST_CASE("the common error is composed from what each rank saw") {
  const std::vector<dist::NamedParameter> parameters{{"a", zeros({4})}, {"b", zeros({4})}, {"c", zeros({4})}};
  std::vector<dist::RankReport> reports(3);
  for (int r = 0; r < 3; ++r) {
    reports[static_cast<size_t>(r)] = {r, 5, {"train.cpp", 9}, "", {true, true, true}, {}, {}, {}};
  }
  // Ranks in different backwards.
  reports[2].round = 4;
  dist::ErrorContext context;
  context.expected = {1, 1, 1};
  context.same_round = false;
  const dist::ReductionError mismatch = dist::compose_error(reports, parameters, context);
  CHECK(mismatch.verdicts().at(0).kind == "backward_mismatch");
  CHECK(mismatch.verdicts()[0].ranks == std::vector<int>{2});
  CHECK(std::string(mismatch.what()).find("rank 2 in backward 4 (at line 9)") != std::string::npos);
  reports[2].round = 5;
  // Ranks in one backward, which do not agree who averages c.
  for (dist::RankReport& each : reports)
    each.elsewhere = {false, true, each.rank == 1};
  const dist::ReductionError disputed = dist::compose_error(reports, parameters, context);
  CHECK(disputed.verdicts().at(0).ranks == std::vector<int>{1});
  CHECK(std::string(disputed.what())
            .starts_with("The ranks do not agree which wrapper averages the shared parameter c: ranks 0 and 2 this "
                         "one (at train.cpp:9), rank 1 another one (at line 9)"));
  context.same_round = true;

  // b is missing on ranks 0 and 2 for different reasons, c on rank 1: two verdicts.
  dist::Cause cut;
  cut.kind = dist::CauseKind::Detached;
  cut.text = "cut at x.cpp:1";
  dist::Cause unused;
  unused.kind = dist::CauseKind::NotUsed;
  unused.text = "not used";
  reports[0].ready[1] = reports[2].ready[1] = reports[1].ready[2] = false;
  reports[0].causes = {{1, cut}};
  reports[2].causes = {{1, unused}};
  reports[1].causes = {{2, unused}};
  const dist::ReductionError error = dist::compose_error(reports, parameters, context);
  REQUIRE(error.verdicts().size() == 2);
  CHECK(error.verdicts()[0].parameters.at(0).name == "b");
  CHECK(error.verdicts()[0].ranks == std::vector<int>{0, 2});
  CHECK(error.verdicts()[0].message.find("No gradient: b (16 B), on ranks 0 and 2, in backward 5 at ") !=
        std::string::npos);
  CHECK(error.verdicts()[0].message.find("on rank 2: not used") != std::string::npos);
  CHECK(error.verdicts()[0].iteration == 5);
  CHECK(error.verdicts()[1].parameters.at(0).bytes == 16);
  // A parameter that the backward did not have to reach is not reported.
  context.expected = {1, 0, 1};
  CHECK(dist::compose_error(reports, parameters, context).verdicts().size() == 1);
  const std::string text = error.what();
  // Brigade's diagnosis comes first, PyTorch's text after it.
  CHECK(text.starts_with("No gradient: b (16 B), on ranks 0 and 2"));
  size_t last = 0;
  for (const char* part :
       {"\nwhy: cut at x.cpp:1", "\ndo:  remove the detach()",
        "\n\nPyTorch says: \"Expected to have finished reduction in the prior iteration before starting a new one."}) {
    CAPTURE(part);
    const size_t at = text.find(part, last);
    REQUIRE(at != std::string::npos);
    last = at;
  }
  // All of PyTorch's text, and what holds afterwards, on request.
  setenv("BRIGADE_VERBOSE", "1", 1);
  context.expected = {1, 1, 1};
  const std::string whole = dist::compose_error(reports, parameters, context).what();
  unsetenv("BRIGADE_VERBOSE");
  for (const char* part : {"Parameters which did not receive grad for rank 1: c",
                           "Parameter indices which did not receive grad for rank 2: 1", "training can go on"}) {
    CHECK(whole.find(part) != std::string::npos);
    CHECK(text.find(part) == std::string::npos);
  }
  CHECK(dist::list_of({0, 1, 3}) == "0, 1 and 3");
  CHECK(dist::bytes_in_words(1536) == "1.5 KiB");
}

}  // namespace brigade::test::layout_test
