// The digits in batches, as the recipes train on them: shuffled in each epoch, the same global
// batches on any number of ranks.
#pragma once

#include <brigade/dist/ddp/sampler.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/lab/digits.h>
#include <brigade/lab/recipes/recipe.h>

namespace brigade::lab {

class DigitsBatches {
 public:
  // Throws ValueError where the global batch is not a multiple of the ranks, or larger than what
  // there is, and for less than 1 epoch. Without `shuffle` the examples stay in their order.
  DigitsBatches(Examples examples, const dist::ProcessGroup& group, const TrainOptions& options, bool shuffle = true);

  // Batches in an epoch; what does not fill one is left out.
  int64_t per_epoch() const noexcept { return per_epoch_; }
  // Steps of the training: as many as --epochs or --steps say.
  int64_t steps() const noexcept { return steps_; }
  // This rank's part of batch number `step`, counted over all epochs.
  Examples at(int64_t step);

 private:
  Examples examples_;
  int64_t batch_;
  int64_t per_epoch_;
  int64_t steps_;
  dist::DistributedSampler sampler_;
  int64_t epoch_ = -1;
  std::vector<int64_t> order_;  // of this rank in that epoch
};

}  // namespace brigade::lab
