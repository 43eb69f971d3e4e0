// DistributedSampler: which examples a rank sees.
#pragma once

#include <cstdint>
#include <vector>

namespace brigade::dist {

struct DistributedSamplerOptions {
  bool shuffle = true;
  uint64_t seed = 0;
  bool drop_last = false;
};

// A permutation of 0..size-1 made from seed + epoch (the same on all ranks), cut so that rank r
// takes every world_size-th index from r on. All ranks get the same count: without drop_last the
// head is repeated to fill up, with it the tail is left out. So the union of the ranks' batches
// number b is the same set of examples for every world size with the same global batch.
class DistributedSampler {
 public:
  // Throws ValueError ("Invalid rank 3, rank should be in the interval [0, 1]").
  DistributedSampler(int64_t size, int rank, int world_size, const DistributedSamplerOptions& options = {});

  // Call at the start of each epoch, or every epoch repeats the same order.
  void set_epoch(uint64_t epoch) noexcept { epoch_ = epoch; }
  // Indices of this rank in this epoch.
  std::vector<int64_t> indices() const;
  // Their number.
  int64_t size() const noexcept { return per_rank_; }

 private:
  int64_t size_;
  int rank_;
  int world_size_;
  DistributedSamplerOptions options_;
  uint64_t epoch_ = 0;
  int64_t per_rank_;
};

}  // namespace brigade::dist
