// Model averaging: averages parameters instead of gradients, at regular intervals (local SGD).
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/nn/module.h>

#include <cstdint>
#include <vector>

namespace brigade::dist {

// Replaces every parameter by its mean over the ranks, with one all-reduce per device and dtype. Collective; the same
// parameters, in the same order, on every rank. Gradients are not changed. Throws ValueError for an undefined tensor
// and DTypeError for a dtype without a mean, before anything is exchanged.
void average_parameters(ProcessGroup& group, const std::vector<Tensor>& parameters,
                        SourceLocation where = SourceLocation::current());

// PyTorch: torch.distributed.algorithms.model_averaging.averagers.PeriodicModelAverager.
class PeriodicModelAverager {
 public:
  // Averages at call number warmup_steps (from 0) and every `period` calls after it. Throws ValueError for a period
  // below 1 and for an empty group.
  PeriodicModelAverager(ProcessGroupPtr group, uint64_t period, uint64_t warmup_steps = 0);
  // Call after each optimizer step. Returns whether it averaged.
  bool average_parameters(const std::vector<Tensor>& parameters, SourceLocation where = SourceLocation::current());
  // Averages the parameters of the module that require a gradient: the others do not move. Buffers are not changed.
  bool average_parameters(const nn::Module& module, SourceLocation where = SourceLocation::current());
  template <nn::Holder H>
  bool average_parameters(const H& module, SourceLocation where = SourceLocation::current()) {
    return average_parameters(static_cast<const nn::Module&>(*module.ptr()), where);
  }
  // Number of calls so far; save it in a checkpoint.
  uint64_t step() const noexcept { return step_; }
  void set_step(uint64_t step) noexcept { step_ = step; }

 private:
  ProcessGroupPtr group_;
  uint64_t period_;
  uint64_t warmup_;
  uint64_t step_ = 0;
};

}  // namespace brigade::dist
