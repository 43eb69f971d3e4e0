// brigade bench bucket: the verdicts follow from known numbers, and the measured terms are those of a bucket.
#include <brigade/lab/bench/bucket/optimum.h>
#include <brigade/lab/bench/bucket/tables.h>
#include <brigade/lab/bench/bucket/terms.h>

#include <brigade/core/error.h>
#include <brigade/dist/buckets/payload.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/dist/observers/norm_meter.h>

#include <doctest/doctest.h>

namespace brigade::test::bench_bucket_test {

using namespace brigade::lab::bench;

constexpr int64_t kMib = 1 << 20;
TEST_CASE("the cheapest bucket a byte, and the term that makes the others dearer") {
  // us per MiB: 100 + 4 + 20, 25 + 4 + 20, 6.25 + 4 + 20, 1.6 + 4 + 60
  const std::vector<BucketCost> costs{{kMib, {{"launch", 100}, {"flags", 4}, {"reduce", 20}}},
                                      {4 * kMib, {{"launch", 100}, {"flags", 16}, {"reduce", 80}}},
                                      {16 * kMib, {{"launch", 100}, {"flags", 64}, {"reduce", 320}}},
                                      {64 * kMib, {{"launch", 100}, {"flags", 256}, {"reduce", 3840}}}};
  const Optimum found = find_optimum(costs);
  CHECK(found.bytes == 16 * kMib);
  CHECK(found.us_per_mib == doctest::Approx(30.25));
  CHECK(found.from_bytes == 16 * kMib);
  CHECK(found.to_bytes == 16 * kMib);
  CHECK(found.largest == "reduce");
  CHECK(found.largest_share == doctest::Approx(20 / 30.25));
  CHECK(found.smaller_pay == "launch");
  CHECK(found.larger_pay == "reduce");
  CHECK(in_words(found) == "least at 16 MiB (30.2 us/MiB, 66 % reduce); smaller ones pay launch, larger ones reduce");
  CHECK(in_words(find_optimum(std::span(costs).first(1))) == "least at 1 MiB (124 us/MiB, 81 % launch)");
  CHECK_THROWS_AS(find_optimum({}), ValueError);
}

TEST_CASE("the best backward over a link, and what decides it") {
  const LinkSpeed link{.latency_us = 1000, .GBps = 1e-3};  // 1 ms, and 1 ms for 1,000 bytes
  const std::vector<int64_t> two{1000, 1000};
  // The buckets are full at 5 and 10 ms and take 2 ms each.
  BestBackward best = best_backward(two, 10, link);
  CHECK(best.ms == doctest::Approx(12));
  CHECK(best.hidden_share == doctest::Approx(0.5));
  CHECK(best.decides == "last bucket");
  // The buckets are full at 1 and 2 ms: the link is busy from 1 to 5.
  best = best_backward(two, 2, {.latency_us = 500, .GBps = 1e-3 * 2 / 3});
  CHECK(best.ms == doctest::Approx(5));
  CHECK(best.hidden_share == doctest::Approx(0.25));
  CHECK(best.decides == "bandwidth");
  best = best_backward(two, 2, {.latency_us = 1500, .GBps = 2e-3});
  CHECK(best.ms == doctest::Approx(5));
  CHECK(best.decides == "latency");
  CHECK(best_backward({}, 7, link).ms == 7);
}

TEST_CASE("terms of a bucket: what a way of placing gradients does not copy costs nothing") {
  for (const Placing placing : {Placing::Views, Placing::Handed, Placing::Copies}) {
    for (const std::string hook : {"none", "fp16_compress"}) {
      CAPTURE(name(placing));
      CAPTURE(hook);
      dist::run_threads(2, [&](const dist::ProcessGroupPtr& group) {
        MeasuredBucket bucket({.bytes = 4096, .parameters = 10, .hook = hook, .placing = placing}, group);
        const BucketTerms terms = bucket.alone();
        CHECK((terms.flatten > 0) == (placing != Placing::Views));
        CHECK((terms.copy_out > 0) == (placing == Placing::Copies));
        CHECK(terms.numbers > 0);
        CHECK(terms.flags > 0);
        CHECK(terms.reduce > 0);
        // 102 elements in slots of 112, the flags of ten parameters, and the words.
        CHECK(bucket.payload_bytes() ==
              4 * (10 * 112 + dist::TailLayout(kFloat32, 2, 10, dist::words_of_diagnosis()).numel));
        bucket.together();
        CHECK(bucket.rest_in_backward() > 0);
      });
    }
  }
  CHECK_THROWS_AS(find_placing("elsewhere"), ValueError);
  CHECK_THROWS_AS(make_hook("zip"), ValueError);
}

}  // namespace brigade::test::bench_bucket_test
