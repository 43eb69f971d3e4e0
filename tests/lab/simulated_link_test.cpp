// The simulated link: values are those of the underlying group, times follow from the speed, and waiting takes no
// processor time.
#include <brigade/core/clock.h>
#include <brigade/lab/bench/simulated_link.h>

#include <brigade/core/error.h>
#include <brigade/core/factory.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/kernels/elementwise.h>

#include <doctest/doctest.h>

#include <ctime>
#include <map>
#include <mutex>

namespace brigade::test::simulated_link_test {

using lab::bench::LinkSchedule;
using lab::bench::LinkSpeed;
using lab::bench::over_link;
using lab::bench::parse_link;

Tensor filled(dist::ProcessGroup& group, int64_t count, double value) {
  const Tensor tensor = group.allocate(count, kFloat32);
  kernels::fill(tensor, value);
  return tensor;
}

// CPU time of the calling thread in milliseconds.
double processor_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

TEST_CASE("a link's speed is read from words") {
  const LinkSpeed speed = parse_link("20us,1.25GB/s");
  CHECK(speed.latency_us == 20);
  CHECK(speed.GBps == 1.25);
  CHECK(speed.nanoseconds(1'250'000) == 1'020'000);
  CHECK(LinkSpeed{}.nanoseconds(1 << 30) == 0);
  CHECK(lab::bench::in_words(speed) == "20 us + bytes / 1.25 GB/s");
  for (const std::string text : {"", "20us", "20,1GB/s", "20us,1", "20us,1GB/s,2", "-1us,1GB/s", "1us,0GB/s", "us,GB/s",
                                 "1us,-2GB/s", "nanus,1GB/s", "infus,1GB/s", "1us,nanGB/s", "20 us,1GB/s"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_link(text), ValueError);
  }
}

TEST_CASE("a link carries one collective after the other") {
  LinkSchedule link({.latency_us = 10, .GBps = 1});
  CHECK(link.transfer(1'000'000, 5'000) == 1'015'000);
  CHECK(link.transfer(1'002'000, 1'000) == 1'026'000);  // waits for the first transfer
  CHECK(link.transfer(2'000'000, 0) == 2'010'000);      // the link was idle
}

TEST_CASE("values over a link are those of the group beneath") {
  dist::run_threads(3, [](const dist::ProcessGroupPtr& group) {
    const dist::ProcessGroupPtr link = over_link(group, {.latency_us = 50, .GBps = 10});
    const double mine = group->rank() + 1;
    const Tensor sum = filled(*link, 100, mine);
    const Tensor mean = filled(*link, 7, mine);
    const Tensor from_one = filled(*link, 5, mine);
    const Tensor all = filled(*link, 6, 0);
    const Tensor part = filled(*link, 2, 0);
    link->all_reduce(sum)->wait();
    link->all_reduce(mean, {.op = dist::ReduceOp::Avg})->wait();
    link->broadcast(from_one, {.root = 1})->wait();
    link->all_gather(all, filled(*link, 2, mine))->wait();
    link->reduce_scatter(part, filled(*link, 6, mine))->wait();
    link->barrier();
    CHECK(sum.to_vector<float>() == std::vector<float>(100, 6.0F));
    CHECK(mean.to_vector<float>() == std::vector<float>(7, 2.0F));
    CHECK(from_one.to_vector<float>() == std::vector<float>(5, 2.0F));
    CHECK(all.to_vector<float>() == std::vector<float>{1, 1, 2, 2, 3, 3});
    CHECK(part.to_vector<float>() == std::vector<float>{6, 6});
    CHECK(link->all_gather_text(std::to_string(group->rank())) == std::vector<std::string>{"0", "1", "2"});
    CHECK(link->flight_recorder().entries().front().kind == dist::CollectiveKind::AllReduce);
    CHECK(link->flight_recorder().entries().front().finished > 0);
  });
}

TEST_CASE("collectives over a link take their time, one after the other and alike on all ranks, without a processor") {
  constexpr int kCollectives = 3;
  constexpr int64_t kEach = 25'000'000;  // ns: 5 ms of latency, 20 ms for 4,000 bytes
  std::map<int, std::vector<dist::WorkTimes>> times;
  std::mutex mutex;
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& group) {
    const dist::ProcessGroupPtr link = over_link(group, {.latency_us = 5'000, .GBps = 2e-4});
    const Tensor data[kCollectives] = {filled(*link, 1'000, 1), filled(*link, 1'000, 1), filled(*link, 1'000, 1)};
    group->barrier();
    const double before = processor_ms();
    const int64_t begin = now_ns();
    std::vector<dist::WorkPtr> works;
    for (const Tensor& each : data)
      works.push_back(link->all_reduce(each));
    const int64_t posted = now_ns() - begin;
    CHECK(posted < kEach);  // a call returns at once
    CHECK_FALSE(works.front()->is_completed());
    CHECK_FALSE(works.back()->completes_within(std::chrono::milliseconds(1)));
    std::vector<dist::WorkTimes> mine;
    for (const dist::WorkPtr& work : works) {
      work->wait();
      CHECK(work->is_completed());
      CHECK(now_ns() >= work->times().reduced);
      mine.push_back(work->times());
    }
    // A rank spins while it waits for its peers to post, but not while it waits for the link.
    CHECK(processor_ms() - before < 0.5 * kCollectives * kEach * 1e-6);
    const std::lock_guard lock(mutex);
    times[group->rank()] = mine;
  });
  for (int i = 0; i < kCollectives; ++i) {
    const dist::WorkTimes& now = times[0][static_cast<size_t>(i)];
    const int64_t began = i == 0 ? now.arrived : times[0][static_cast<size_t>(i) - 1].reduced;
    CHECK(now.reduced - began == kEach);
    CHECK(times[1][static_cast<size_t>(i)].reduced == now.reduced);
  }
}

TEST_CASE("a link shows which group can carry it, and that it is too slow for the time-out") {
  class Elsewhere : public dist::ProcessGroup {
   public:
    Elsewhere() : ProcessGroup(0, 1, std::chrono::seconds(1)) {}
    const char* backend() const noexcept override { return "gloo"; }
    Tensor allocate(int64_t numel, DType dtype) override { return empty({numel}, dtype); }
    void abort(std::string_view) override {}
    dist::WorkPtr do_all_reduce(const Tensor&, const dist::CollectiveOptions&) override { return nullptr; }
    dist::WorkPtr do_broadcast(const Tensor&, const dist::CollectiveOptions&) override { return nullptr; }
    dist::WorkPtr do_all_gather(const Tensor&, const Tensor&, const dist::CollectiveOptions&) override {
      return nullptr;
    }
    dist::WorkPtr do_reduce_scatter(const Tensor&, const Tensor&, const dist::CollectiveOptions&) override {
      return nullptr;
    }
    dist::WorkPtr do_barrier(const dist::CollectiveOptions&) override { return nullptr; }
  };
  CHECK_THROWS_WITH_AS(over_link(std::make_shared<Elsewhere>(), {}), doctest::Contains("got gloo"), ValueError);

  dist::run_threads(2, [](const dist::ProcessGroupPtr& group) {
    const dist::ProcessGroupPtr link = over_link(group, {.latency_us = 1e6, .GBps = 1});
    const dist::WorkPtr work = link->all_reduce(filled(*link, 10, 1));
    CHECK_THROWS_WITH_AS(work->wait(std::chrono::milliseconds(20)), doctest::Contains("the simulated link needs"),
                         TimeoutError);
  });
}

TEST_CASE("a rank that leaves ends the peers' waits over a link") {
  CHECK_THROWS_WITH_AS(dist::run_threads(2,
                                         [](const dist::ProcessGroupPtr& group) {
                                           const dist::ProcessGroupPtr link = over_link(group, {.latency_us = 1});
                                           if (group->rank() == 1) throw ValueError("no more data");
                                           link->all_reduce(filled(*link, 10, 1))->wait();
                                         }),
                       doctest::Contains("no more data"), Error);
}

}  // namespace brigade::test::simulated_link_test
