// The time breakdown of one reduced backward, from its timeline: how much of the communication was hidden behind
// the backward, and what this rank waited for after its own work was done.
#pragma once

#include <brigade/dist/timeline/timeline.h>

namespace brigade::lab::bench {

// Milliseconds. Buckets are reduced one after another. A bucket is on the way from the moment when all ranks have
// launched it and the previous one is done until its sums are there. When the process group does not report when
// all ranks had launched it (BucketEvents::arrived), it is on the way from this rank's launch, which includes
// waiting for peers; then `peers_known` is false and waiting_ms is 0.
//
// compute_ms + waiting_ms + reducing_ms + placing_ms is the whole backward.
struct RoundShares {
  double compute_ms = 0;  // from RoundEvents::began until all nodes had run
  // After that:
  double waiting_ms = 0;   // nothing was on the way: a peer had not launched its bucket
  double reducing_ms = 0;  // buckets were on the way
  double placing_ms = 0;   // the rest: verdict, gradients into place
  double on_the_way_ms = 0;
  double hidden_ms = 0;  // the part of on_the_way_ms while nodes still ran
  bool peers_known = true;

  double backward_ms() const noexcept { return compute_ms + waiting_ms + reducing_ms + placing_ms; }
  // hidden_ms / on_the_way_ms; 0 when nothing was sent.
  double hidden_share() const noexcept { return on_the_way_ms > 0 ? hidden_ms / on_the_way_ms : 0; }
};

RoundShares shares_of(const dist::RoundEvents& round);

}  // namespace brigade::lab::bench
