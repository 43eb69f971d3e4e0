// Where the time of one reduced backward went, as its timeline says: how much of the communication
// passed behind the backward, and what this rank waited for when its own work was done.
#pragma once

#include <brigade/dist/timeline/timeline.h>

namespace brigade::lab::bench {

// Milliseconds. Buckets are reduced one after the other: a bucket's time on the way begins when all
// ranks have launched it and the one before is done, and ends when its sums are there. Where the
// process group cannot tell when all had launched it (BucketEvents::arrived), it begins with this
// rank's launch, and waiting for peers is part of it; then `peers_known` is false and waiting_ms is
// 0.
//
// compute_ms + waiting_ms + reducing_ms + placing_ms is the whole backward.
struct RoundShares {
  double compute_ms = 0;  // from the plan until all nodes had run
  // After that:
  double waiting_ms = 0;   // nothing was on the way: a peer had not launched it
  double reducing_ms = 0;  // buckets were on the way
  double placing_ms = 0;   // the rest: verdict, gradients to their places
  double on_the_way_ms = 0;
  double hidden_ms = 0;  // of it, while nodes still ran
  bool peers_known = true;

  double backward_ms() const noexcept { return compute_ms + waiting_ms + reducing_ms + placing_ms; }
  // hidden_ms / on_the_way_ms; 0 where nothing was sent.
  double hidden_share() const noexcept { return on_the_way_ms > 0 ? hidden_ms / on_the_way_ms : 0; }
};

RoundShares shares_of(const dist::RoundEvents& round);

}  // namespace brigade::lab::bench
