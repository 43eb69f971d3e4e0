// The one-cycle policy (Smith and Topin, "Super-Convergence", arXiv 1708.07120), as PyTorch defines
// it.
#pragma once

#include <brigade/optim/lr_scheduler/lr_scheduler.h>

#include <vector>

namespace brigade::optim {

enum class AnnealStrategy : uint8_t { Cos, Linear };

// Each list has one number for all groups, or one for each.
struct OneCycleOptions {
  std::vector<double> max_lr;
  int64_t total_steps = 0;      // set this,
  int64_t epochs = 0;           // or these two,
  int64_t steps_per_epoch = 0;  // whose product it is
  double pct_start = 0.3;       // fraction of the steps in which the rate rises
  AnnealStrategy anneal_strategy = AnnealStrategy::Cos;
  bool cycle_momentum = true;  // momentum (or the first beta) falls while the rate rises
  std::vector<double> base_momentum = {0.85};
  std::vector<double> max_momentum = {0.95};
  double div_factor = 25;         // the first rate is max_lr / div_factor,
  double final_div_factor = 1e4;  // the last one is that, divided by final_div_factor
  bool three_phase = false;       // the rate falls to the first one in as many steps as it rose in, then to the last
};

// One step per batch; the initial rates of the groups become max_lr / div_factor. Throws ValueError for options that do
// not fit ("You must define either total_steps OR (epochs AND steps_per_epoch)", ...), for an optimizer without
// momentum and betas if they are to be cycled, and by step() after total_steps ("Tried to step 101 times").
class OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options, SourceLocation where = SourceLocation::current());

 protected:
  std::vector<double> next_lr() override;
  void visit(const SchedulerVisitor& visitor) override;

 private:
  double anneal(double from, double to, double part) const;

  int64_t total_steps_;
  double pct_start_;
  AnnealStrategy strategy_;
  bool cycle_momentum_, three_phase_;
  std::vector<double> initial_lrs_, max_lrs_, min_lrs_, base_momentums_, max_momentums_;
};

}  // namespace brigade::optim
