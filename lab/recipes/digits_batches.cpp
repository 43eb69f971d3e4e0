// Cuts the sampler's order of an epoch into batches.
#include <brigade/lab/recipes/digits_batches.h>

#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/recipes/training.h>

#include <span>

namespace brigade::lab {

DigitsBatches::DigitsBatches(Examples examples, const dist::ProcessGroup& group, const TrainOptions& options,
                             bool shuffle)
    : examples_(std::move(examples)),
      batch_(batch_of_a_rank(options, group, examples_.labels.numel())),
      per_epoch_(examples_.labels.numel() / options.global_batch),
      steps_(steps_of(options, per_epoch_)),
      sampler_(examples_.labels.numel(), group.rank(), group.size(),
               {.shuffle = shuffle, .seed = options.seed, .drop_last = true}) {}

Examples DigitsBatches::at(int64_t step) {
  if (step / per_epoch_ != epoch_) {
    epoch_ = step / per_epoch_;
    sampler_.set_epoch(static_cast<uint64_t>(epoch_));
    order_ = sampler_.indices();
  }
  const auto first = static_cast<size_t>(step % per_epoch_ * batch_);
  const Tensor chosen =
      from_values(std::span<const int64_t>(order_).subspan(first, static_cast<size_t>(batch_)), {batch_})
          .to(examples_.labels.device());
  return {index_select(examples_.images, 0, chosen), index_select(examples_.labels, 0, chosen)};
}

}  // namespace brigade::lab
