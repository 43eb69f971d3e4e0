// Sleeps, progresses the group, and posts all-reduces.
#include <brigade/lab/bench/replay/player.h>

#include <brigade/core/clock.h>
#include <brigade/dist/timeline/timeline.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace brigade::lab::bench {
namespace {

// Sleeps except for the last moment: a sleeping thread wakes up about 50 us late.
void pause_until(int64_t time) {
  constexpr int64_t kAwake = 80'000;
  if (time - now_ns() > kAwake)
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time - kAwake)));
  while (now_ns() < time) {
  }
}

std::vector<std::pair<int64_t, DType>> sizes_of(const ReplayStep& step) {
  std::vector<std::pair<int64_t, DType>> sizes;
  for (const ReplayBucket& bucket : step.buckets)
    sizes.emplace_back(bucket.bytes, bucket.dtype);
  return sizes;
}

}  // namespace

Player::Player(std::vector<ReplayStep> steps, dist::ProcessGroupPtr group)
    : steps_(std::move(steps)), group_(std::move(group)) {
  std::map<std::vector<std::pair<int64_t, DType>>, std::vector<Tensor>> known;
  for (const ReplayStep& step : steps_) {
    std::vector<Tensor>& payloads = known[sizes_of(step)];
    for (size_t b = payloads.size(); b < step.buckets.size(); ++b) {
      const ReplayBucket& bucket = step.buckets[b];
      payloads.push_back(group_->allocate(
          std::max<int64_t>(1, bucket.bytes / static_cast<int64_t>(itemsize(bucket.dtype))), bucket.dtype));
      kernels::fill(payloads.back(), 0.0);
    }
    payloads_.push_back(payloads);
  }
}

std::vector<Player::Played> Player::play() {
  std::vector<Played> played;
  for (size_t i = 0; i < steps_.size(); ++i) {
    group_->barrier();
    const ReplayStep& step = steps_[i];
    std::vector<double> looks = step.ready_us;
    std::ranges::sort(looks);
    auto look = std::ranges::lower_bound(looks, 0.0);
    dist::RoundEvents events;
    pause_until(now_ns() + ns_of_us(step.late_us));
    events.began = now_ns();
    const auto compute_until = [&](double us) {
      for (; look != looks.end() && *look <= us; ++look) {
        pause_until(events.began + ns_of_us(*look));
        group_->progress();
      }
      pause_until(events.began + ns_of_us(us));
    };
    std::vector<dist::WorkPtr> works;
    for (size_t b = 0; b < step.buckets.size(); ++b) {
      compute_until(std::min(step.buckets[b].at_us, step.compute_us));
      dist::BucketEvents& bucket = events.buckets.emplace_back();
      bucket.launched = now_ns();
      works.push_back(
          group_->all_reduce(payloads_[i][b], {.op = dist::ReduceOp::Avg, .description = "a replayed bucket"}));
    }
    compute_until(step.compute_us);
    events.compute_ended = now_ns();
    for (size_t b = 0; b < works.size(); ++b) {
      works[b]->wait();
      const dist::WorkTimes times = works[b]->times();
      events.buckets[b].arrived = times.arrived;
      events.buckets[b].reduced = times.reduced;
      events.buckets[b].finished = now_ns();
    }
    pause_until(now_ns() + ns_of_us(step.rest_us));
    events.ended = now_ns();
    played.push_back({static_cast<double>(events.ended - events.began) * 1e-6, shares_of(events)});
  }
  return played;
}

}  // namespace brigade::lab::bench
