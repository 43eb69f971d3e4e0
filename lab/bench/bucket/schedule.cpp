// Sends the buckets over a LinkSchedule, each when it is full.
#include <brigade/lab/bench/bucket/tables.h>

#include <algorithm>
#include <cmath>

namespace brigade::lab::bench {

BestBackward best_backward(std::span<const int64_t> bucket_bytes, double compute_ms, const LinkSpeed& link) {
  BestBackward best{.ms = compute_ms, .decides = "bandwidth"};
  double total = 0;
  for (const int64_t bytes : bucket_bytes)
    total += static_cast<double>(bytes);
  if (total <= 0) return best;
  const double compute = compute_ms * 1e6;
  LinkSchedule schedule(link);
  double filled = 0;
  double busy = 0;
  double hidden = 0;
  double end = 0;
  bool idle = false;  // whether the link was idle when the latest bucket was full
  for (const int64_t bytes : bucket_bytes) {
    filled += static_cast<double>(bytes);
    const double ready = compute * filled / total;
    idle = end <= ready;
    end = static_cast<double>(schedule.transfer(std::llround(ready), bytes));
    const auto takes = static_cast<double>(link.nanoseconds(bytes));
    busy += takes;
    hidden += std::clamp(compute - (end - takes), 0.0, takes);
  }
  best.ms = end * 1e-6;
  best.hidden_share = busy > 0 ? hidden / busy : 0;
  const double latency = link.latency_us * 1e3 * static_cast<double>(bucket_bytes.size());
  if (idle) {
    best.decides = "last bucket";
  } else if (latency > busy / 2) {
    best.decides = "latency";
  }
  return best;
}

}  // namespace brigade::lab::bench
