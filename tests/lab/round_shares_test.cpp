// How the time of a backward is divided, for timelines with known numbers.
#include <brigade/lab/bench/round_shares.h>

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/lab/bench/simulated_link.h>
#include <brigade/nn/nn.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace brigade::test::round_shares_test {
using dist::BucketEvents;
using dist::RoundEvents;
using lab::bench::RoundShares;
using lab::bench::shares_of;

namespace {

constexpr int64_t kMs = 1'000'000;

BucketEvents bucket(double launched, double arrived, double reduced, double finished) {
  const auto at = [](double ms) { return static_cast<int64_t>(ms * kMs); };
  return {.launched = at(launched), .arrived = at(arrived), .reduced = at(reduced), .finished = at(finished)};
}

// A backward from 100 to 110 ms; the gradients are final at `ended`.
RoundEvents round_of(std::vector<BucketEvents> buckets, double ended) {
  RoundEvents round;
  round.began = 100 * kMs;
  round.compute_ended = 110 * kMs;
  round.ended = static_cast<int64_t>(ended * kMs);
  round.buckets = std::move(buckets);
  return round;
}

}  // namespace

TEST_CASE("the time of a backward is what is computed, waited for, reduced and placed") {
  struct Row {
    const char* what;
    RoundEvents round;
    double waiting, reducing, placing, on_the_way, hidden;
  };
  for (const Row& row : std::vector<Row>{
           {"nothing is sent", round_of({}, 110.5), 0, 0, 0.5, 0, 0},
           {"all of it is hidden, and seen late", round_of({bucket(102, 103, 105, 109)}, 110), 0, 0, 0, 2, 2},
           {"it ends behind the last node", round_of({bucket(102, 106, 114, 114.5)}, 115), 0, 4, 1, 8, 4},
           {"a peer comes late", round_of({bucket(102, 113, 114, 114)}, 114), 3, 1, 0, 1, 0},
           {"the second waits for the first, which no peer could hasten",
            round_of({bucket(102, 102, 108, 108), bucket(104, 104, 112, 112)}, 113), 0, 2, 1, 10, 8},
           {"a peer is late between two", round_of({bucket(104, 105, 111, 111), bucket(109, 114, 116, 116)}, 116), 3, 3,
            0, 8, 5},
           {"one of the two is never sent", round_of({bucket(102, 103, 104, 104), BucketEvents{}}, 110), 0, 0, 0, 1,
            1}}) {
    CAPTURE(row.what);
    const RoundShares found = shares_of(row.round);
    CHECK(found.peers_known);
    CHECK(found.compute_ms == doctest::Approx(10));
    CHECK(found.waiting_ms == doctest::Approx(row.waiting));
    CHECK(found.reducing_ms == doctest::Approx(row.reducing));
    CHECK(found.placing_ms == doctest::Approx(row.placing));
    CHECK(found.on_the_way_ms == doctest::Approx(row.on_the_way));
    CHECK(found.hidden_ms == doctest::Approx(row.hidden));
    CHECK(found.backward_ms() == doctest::Approx(static_cast<double>(row.round.ended - row.round.began) / kMs));
    CHECK(found.hidden_share() == doctest::Approx(row.on_the_way > 0 ? row.hidden / row.on_the_way : 0));
  }
}

TEST_CASE("where nobody knows when the peers came, waiting for them counts as being on the way") {
  const RoundShares found = shares_of(round_of({bucket(104, 0, 0, 112)}, 112));
  CHECK_FALSE(found.peers_known);
  CHECK(found.waiting_ms == 0);
  CHECK(found.on_the_way_ms == doctest::Approx(8));
  CHECK(found.hidden_ms == doctest::Approx(6));
  CHECK(found.reducing_ms == doctest::Approx(2));
}

namespace {

// Two parameters, each in its own bucket; the second one's gradient comes first, then a pause, then the first one's.
struct PausingImpl : nn::Module {
  Tensor first, second;
  std::chrono::milliseconds pause;
  explicit PausingImpl(std::chrono::milliseconds p) : pause(p) {
    first = register_parameter("first", zeros({1'000}));
    second = register_parameter("second", zeros({1'000}));
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = x * first;
    if (y.requires_grad()) {
      y.register_hook([this](const Tensor& grad) {
        std::this_thread::sleep_for(pause);  // the second's gradient is ready, the first's is not
        return grad;
      });
    }
    return sum(y + second);
  }
};
BRIGADE_MODULE(Pausing);

}  // namespace

TEST_CASE("over a link of known speed the hidden share is the computed one") {
  // Each bucket takes 20 ms on the link. The first transfer is hidden behind a pause of 50 ms; the second starts when
  // no computation is left. So half is hidden.
  dist::run_threads(2, [](const dist::ProcessGroupPtr& group) {
    const auto link = lab::bench::over_link(group, {.latency_us = 20'000});
    Pausing net(std::chrono::milliseconds(50));
    dist::DistributedDataParallel<Pausing> ddp(net, link, {.bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6});
    ddp(ones({1'000})).backward();
    const RoundEvents& round = ddp.timeline().rounds().back();
    REQUIRE(round.buckets.size() == 2);
    const RoundShares found = shares_of(round);
    CHECK(found.peers_known);
    // Exactly 2 x 20 ms: the link's schedule does not depend on when a rank polls.
    CHECK(found.on_the_way_ms == doctest::Approx(40).epsilon(1e-6));
    // A few microseconds pass between the last launch and the end of the nodes.
    const double last = std::max(0.0, static_cast<double>(round.compute_ended - round.buckets[1].arrived) * 1e-6);
    CHECK(last < 10);
    CHECK(found.hidden_ms == doctest::Approx(20 + last).epsilon(1e-6));
    CHECK(found.hidden_share() == doctest::Approx((20 + last) / 40).epsilon(1e-6));
    CHECK(found.reducing_ms == doctest::Approx(20 - last).epsilon(1e-6));
    CHECK(found.compute_ms >= 50);
    const double whole = static_cast<double>(round.ended - round.began) * 1e-6;
    CHECK(found.backward_ms() == doctest::Approx(whole).epsilon(1e-6));
  });
}

}  // namespace brigade::test::round_shares_test
