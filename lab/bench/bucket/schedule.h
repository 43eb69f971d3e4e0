// A lower bound for any reducer: the time until the buckets of a backward of known duration have passed a link of
// known speed, and what limits it.
#pragma once

#include <brigade/lab/bench/simulated_link.h>

#include <cstdint>
#include <span>
#include <string>

namespace brigade::lab::bench {

struct BestBackward {
  double ms = 0;            // until the last bucket has passed the link
  double hidden_share = 0;  // of the time that the link is busy
  // What limits it, and what would be faster:
  //   "last bucket"  the link is idle when the last bucket is full: smaller buckets
  //   "latency"      the link is busy then, mostly with latency: larger buckets
  //   "bandwidth"    the link is busy then, mostly with bytes: a faster link, or fewer bytes
  std::string decides;
};

// Gradients become ready evenly over `compute_ms`; buckets of these sizes fill in this order, and each is sent as
// soon as it is full.
BestBackward best_backward(std::span<const int64_t> bucket_bytes, double compute_ms, const LinkSpeed& link);

}  // namespace brigade::lab::bench
