// Ranks with different numbers of batches, and one process that trains on all of them.
#pragma once

#include "mechanisms_net.h"

namespace brigade::test::joining {

using mechanisms::batch_of;
using mechanisms::compare;
using mechanisms::loss_of;
using mechanisms::Net;
using mechanisms::Values;
using mechanisms::values_of;

using Ddp = dist::DistributedDataParallel<Net>;

// Rank r has 1 + r batches.
inline int batches_of(int rank) { return 1 + rank; }

inline Net seeded_net(uint64_t seed = 1) {
  manual_seed(seed);
  return Net();
}

// One process: each iteration takes the existing batches, with the loss divided by the number of ranks.
template <class Optimizer>
void train_reference(Net& net, Optimizer& optimizer, int ranks, int offset = 0) {
  for (int s = 0; s < batches_of(ranks - 1); ++s) {
    optimizer.zero_grad();
    for (int r = 0; r < ranks; ++r) {
      if (s < batches_of(r)) (loss_of(net(batch_of(r, s + offset))) / static_cast<double>(ranks)).backward();
    }
    optimizer.step();
  }
}

template <class Optimizer>
void train_step(Ddp& ddp, Optimizer& optimizer, int rank, int step) {
  optimizer.zero_grad();
  loss_of(ddp(batch_of(rank, step))).backward();
  optimizer.step();
}

}  // namespace brigade::test::joining
