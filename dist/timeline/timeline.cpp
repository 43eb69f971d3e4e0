// Keeps the last rounds, and computes how much communication was hidden behind backward.
#include <brigade/dist/timeline/timeline.h>

#include <algorithm>

namespace brigade::dist {
namespace {
struct Span {
  int64_t began, ended;
};
Span span_of(const BucketEvents& bucket) {
  return bucket.device_ended > 0 ? Span{bucket.device_began, bucket.device_ended}
                                 : Span{bucket.launched, bucket.finished};
}
}  // namespace

int64_t RoundEvents::communication() const noexcept {
  int64_t total = 0;
  for (const BucketEvents& bucket : buckets) {
    const Span span = span_of(bucket);
    total += std::max<int64_t>(0, span.ended - span.began);
  }
  return total;
}

int64_t RoundEvents::hidden() const noexcept {
  int64_t total = 0;
  for (const BucketEvents& bucket : buckets) {
    const Span span = span_of(bucket);
    const int64_t end = bucket.device_ended > 0 ? device_compute_ended : compute_ended;
    total += std::max<int64_t>(0, std::min(span.ended, end) - span.began);
  }
  return total;
}

double RoundEvents::overlap() const noexcept {
  const int64_t all = communication();
  return all > 0 ? static_cast<double>(hidden()) / static_cast<double>(all) : 0;
}

void Timeline::keep(size_t rounds) {
  kept_ = std::max<size_t>(1, rounds);
  asked_for_ = true;
  drop_old();
}

void Timeline::drop_old() {
  while (rounds_.size() > kept_) {
    rounds_.pop_front();
    open_.pop_front();
  }
}

void Timeline::add(RoundEvents events, Complete complete) {
  rounds_.push_back(std::move(events));
  open_.push_back(std::move(complete));
  drop_old();
}

const std::deque<RoundEvents>& Timeline::rounds() const {
  for (size_t i = 0; i < rounds_.size(); ++i) {
    if (open_[i] && open_[i](rounds_[i])) open_[i] = nullptr;
  }
  return rounds_;
}

void Timeline::add(StepEvents step) {
  // A program may step for ever without another backward.
  constexpr size_t kMostSteps = 64;
  if (!rounds_.empty() && rounds_.back().steps.size() < kMostSteps) rounds_.back().steps.push_back(std::move(step));
}

}  // namespace brigade::dist
