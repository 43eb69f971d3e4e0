// FabricOptimizer: an optimizer set up by a Fabric, which steps it as the precision requires.
#pragma once

#include <brigade/dist/fabric/optimizer_steps.h>
#include <brigade/optim/optimizer.h>

#include <memory>
#include <utility>

namespace brigade::dist {

// An optimizer to set up, with the line of the caller: a default argument cannot follow a parameter pack.
struct OptimizerArg {
  optim::Optimizer& optimizer;
  SourceLocation where;
  OptimizerArg(optim::Optimizer& given, SourceLocation line = SourceLocation::current()) noexcept  // NOLINT: converts
      : optimizer(given), where(line) {}
};

// A handle: copies refer to the same optimizer, which must outlive its Fabric.
class FabricOptimizer {
 public:
  FabricOptimizer(optim::Optimizer& optimizer, std::shared_ptr<OptimizerSteps> steps) noexcept
      : optimizer_(&optimizer), steps_(std::move(steps)) {}

  // See OptimizerSteps.
  bool step(SourceLocation where = SourceLocation::current()) { return steps_->step(*optimizer_, where); }
  void zero_grad(bool set_to_none = true, SourceLocation where = SourceLocation::current()) {
    steps_->zero_grad(*optimizer_, set_to_none, where);
  }

  // The optimizer itself: for schedules and checkpoints.
  optim::Optimizer& operator*() const noexcept { return *optimizer_; }
  optim::Optimizer* operator->() const noexcept { return optimizer_; }

 private:
  optim::Optimizer* optimizer_;
  std::shared_ptr<OptimizerSteps> steps_;
};

}  // namespace brigade::dist
