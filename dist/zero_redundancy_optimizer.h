// ZeRO stage 1: the states of an optimizer are split over the ranks.
//
//   dist::ZeroRedundancyOptimizer<optim::AdamW> optimizer(net->parameters(), {.lr = 1e-3}, group);
//
// Each parameter belongs to one rank, which alone keeps its state (moments), steps it, and sends the result to the
// others: memory for states goes down by the number of ranks. Whole parameters are dealt out greedily, the largest
// first to the rank that has least. Source: Rajbhandari, Rasley, Ruwase, He: "ZeRO: memory optimizations toward
// training trillion parameter models", SC 2020. Gradients must be averaged before step(), as DistributedDataParallel
// does.
#pragma once

#include <brigade/dist/process_group.h>
#include <brigade/optim/optimizer.h>

#include <memory>
#include <vector>

namespace brigade::dist {

// Element i: the rank that owns parameter i. Deterministic.
std::vector<int> assign_owners(const std::vector<Tensor>& parameters, int ranks);

// What does not depend on the inner optimizer.
class ZeroRedundancyOptimizerBase : public optim::Optimizer {
 public:
  size_t groups() const noexcept override { return 1; }
  // Gathers the states of all ranks on rank `to`. Collective.
  void consolidate_state_dict(int to = 0, SourceLocation where = SourceLocation::current());
  // The state of the whole optimizer, as the inner kind would have it over all parameters. Throws DistError on a rank
  // that has not consolidated since the last step.
  optim::OptimizerState state_dict() const override;
  // A whole state, on every rank; each keeps its part.
  void load_state_dict(const optim::OptimizerState& state) override;
  std::string options_text() const override { return inner().options_text(); }
  const std::vector<int>& owners() const noexcept { return owners_; }

 protected:
  ZeroRedundancyOptimizerBase(std::vector<Tensor> parameters, ProcessGroupPtr group);
  void do_step() override;
  const std::vector<Tensor>& group_parameters(size_t) const override { return all_; }
  virtual optim::Optimizer& inner() = 0;
  virtual const optim::Optimizer& inner() const = 0;
  // This rank's; a stand-in that never moves when it owns none.
  std::vector<Tensor> shard() const;

 private:
  std::vector<Tensor> all_;
  ProcessGroupPtr group_;
  std::vector<int> owners_;
  std::unique_ptr<optim::OptimizerState> consolidated_;
};

template <class Inner>
class ZeroRedundancyOptimizer final : public ZeroRedundancyOptimizerBase {
 public:
  // `options`: those of Inner. Throws what Inner throws for them, and for the parameters.
  template <class Options>
  ZeroRedundancyOptimizer(const std::vector<Tensor>& parameters, const Options& options, ProcessGroupPtr group)
      : ZeroRedundancyOptimizerBase(parameters, std::move(group)), inner_(shard(), options) {}
  // To change a hyperparameter; on every rank alike.
  auto& options() { return inner_.options(); }
  const auto& options() const { return inner_.options(); }

 protected:
  optim::Optimizer& inner() override { return inner_; }
  const optim::Optimizer& inner() const override { return inner_; }

 private:
  Inner inner_;
};

}  // namespace brigade::dist
