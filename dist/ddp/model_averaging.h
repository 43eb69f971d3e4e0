// Model averaging: parameters instead of gradients are averaged, every so often (local SGD).
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/nn/module.h>

#include <cstdint>
#include <vector>

namespace brigade::dist {

// Every parameter becomes its mean over the ranks: one all-reduce per dtype. Collective; the same
// parameters, in the same order, on every rank. Gradients are left alone. Throws ValueError and
// DTypeError, before anything is exchanged, for a tensor that is undefined or of a dtype without a
// mean.
void average_parameters(ProcessGroup& group, const std::vector<Tensor>& parameters,
                        SourceLocation where = SourceLocation::current());

// PyTorch: torch.distributed.algorithms.model_averaging.averagers.PeriodicModelAverager.
class PeriodicModelAverager {
 public:
  // Averages at call number warmup_steps (from 0) and every `period` calls after it. Throws
  // ValueError for a period
  // < 1 and for an empty group.
  PeriodicModelAverager(ProcessGroupPtr group, uint64_t period, uint64_t warmup_steps = 0);
  // To be called after each optimizer step. Returns whether it averaged.
  bool average_parameters(const std::vector<Tensor>& parameters, SourceLocation where = SourceLocation::current());
  // Those parameters of the module that require a gradient: the others do not move. Buffers are
  // left alone.
  bool average_parameters(const nn::Module& module, SourceLocation where = SourceLocation::current());
  template <nn::Holder H>
  bool average_parameters(const H& module, SourceLocation where = SourceLocation::current()) {
    return average_parameters(static_cast<const nn::Module&>(*module.ptr()), where);
  }
  // Calls so far; a checkpoint keeps it.
  uint64_t step() const noexcept { return step_; }
  void set_step(uint64_t step) noexcept { step_ = step; }

 private:
  ProcessGroupPtr group_;
  uint64_t period_;
  uint64_t warmup_;
  uint64_t step_ = 0;
};

}  // namespace brigade::dist
