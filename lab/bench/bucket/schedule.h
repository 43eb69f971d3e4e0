// The best that any reducer could do: when the buckets of a backward of known length are through a
// link of known speed, and what decides it.
#pragma once

#include <brigade/lab/bench/simulated_link.h>

#include <cstdint>
#include <span>
#include <string>

namespace brigade::lab::bench {

struct BestBackward {
  double ms = 0;            // until the last bucket is through
  double hidden_share = 0;  // of the time that the link is busy
  // What it would take to be faster:
  //   "last bucket"  the link is idle when the last bucket is full: smaller ones
  //   "latency"      it is not, and most of its time is latency: larger ones
  //   "bandwidth"    it is not, and most of its time is bytes: a faster link, or fewer bytes
  std::string decides;
};

// Gradients become ready evenly over `compute_ms`; buckets of these bytes fill in this order and are
// sent at once.
BestBackward best_backward(std::span<const int64_t> bucket_bytes, double compute_ms, const LinkSpeed& link);

}  // namespace brigade::lab::bench
