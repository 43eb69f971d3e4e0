// Keeps the last rounds, and computes how much communication was hidden behind backward.
#include <brigade/dist/timeline/timeline.h>

#include <algorithm>
#include <chrono>

namespace brigade::dist {

int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t RoundEvents::communication() const noexcept {
  int64_t total = 0;
  for (const BucketEvents& bucket : buckets)
    total += std::max<int64_t>(0, bucket.finished - bucket.launched);
  return total;
}

int64_t RoundEvents::hidden() const noexcept {
  int64_t total = 0;
  for (const BucketEvents& bucket : buckets)
    total += std::max<int64_t>(0, std::min(bucket.finished, compute_ended) - bucket.launched);
  return total;
}

double RoundEvents::overlap() const noexcept {
  const int64_t all = communication();
  return all > 0 ? static_cast<double>(hidden()) / static_cast<double>(all) : 0;
}

void Timeline::keep(size_t rounds) {
  kept_ = std::max<size_t>(1, rounds);
  while (rounds_.size() > kept_)
    rounds_.pop_front();
}

void Timeline::add(RoundEvents events) {
  rounds_.push_back(std::move(events));
  if (rounds_.size() > kept_) rounds_.pop_front();
}

void Timeline::add(StepEvents step) {
  // A program may step for ever without another backward.
  constexpr size_t kMostSteps = 64;
  if (!rounds_.empty() && rounds_.back().steps.size() < kMostSteps) rounds_.back().steps.push_back(std::move(step));
}

}  // namespace brigade::dist
