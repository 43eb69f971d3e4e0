// DistributedSampler: selects the examples of a rank.
#pragma once

#include <brigade/data/sampler.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace brigade::dist {

struct DistributedSamplerOptions {
  bool shuffle = true;
  uint64_t seed = 0;
  bool drop_last = false;
};

// A permutation of 0..size-1 generated from seed + epoch (the same on all ranks); rank r takes every world_size-th
// index from r on. All ranks get the same count: without drop_last the head is repeated to fill up, with it the tail
// is dropped. The union of the ranks' batches number b is therefore the same set of examples for every world size
// with the same global batch.
//   auto sampler = std::make_shared<dist::DistributedSampler>(dataset->size(), group->rank(), group->size());
//   data::DataLoader loader(dataset, {.batch_size = 32, .sampler = sampler});
class DistributedSampler : public data::Sampler {
 public:
  // Throws ValueError ("Invalid rank 3, rank should be in the interval [0, 1]").
  DistributedSampler(int64_t size, int rank, int world_size, const DistributedSamplerOptions& options = {});

  // Call at the start of each epoch; otherwise every epoch repeats the same order. A DataLoader calls it.
  void set_epoch(uint64_t epoch) noexcept override { epoch_ = epoch; }
  // Indices of this rank in this epoch.
  std::vector<int64_t> indices() const override;
  // The number of those indices.
  int64_t size() const noexcept override { return per_rank_; }
  int world_size() const noexcept override { return world_size_; }
  // Identifies the permutation, independently of rank and world size: a job may be resumed on more ranks.
  uint64_t fingerprint() const override;

 private:
  int64_t size_;
  int rank_;
  int world_size_;
  DistributedSamplerOptions options_;
  uint64_t epoch_ = 0;
  int64_t per_rank_;
};

// Takes every world_size-th index of a user's sampler, starting at this rank; the head is repeated so that all ranks
// get the same count.
class DistributedSamplerWrapper : public data::Sampler {
 public:
  // Throws ValueError without a sampler, and for an invalid rank like DistributedSampler.
  DistributedSamplerWrapper(std::shared_ptr<data::Sampler> sampler, int rank, int world_size);

  void set_epoch(uint64_t epoch) noexcept override { sampler_->set_epoch(epoch); }
  std::vector<int64_t> indices() const override;
  int64_t size() const noexcept override { return (sampler_->size() + world_size_ - 1) / world_size_; }
  int world_size() const noexcept override { return world_size_; }
  uint64_t fingerprint() const override { return sampler_->fingerprint(); }

 private:
  std::shared_ptr<data::Sampler> sampler_;
  int rank_;
  int world_size_;
};

}  // namespace brigade::dist
