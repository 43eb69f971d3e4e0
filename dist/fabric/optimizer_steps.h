// OptimizerSteps: the optimizers of a training loop, their steps, and the loss scale that they share.
//
// With a loss scaler an iteration must end with one update(), after the steps of all its optimizers and before the
// next loss is scaled. A hand-written loop does not mark that point, so it is inferred: the iteration ends when every
// optimizer has stepped, or when one that has stepped is cleared while no other holds gradients that are still
// scaled. Gradients are thus always divided by the scale they were multiplied by, in whatever order the loop steps
// and clears.
#pragma once

#include <brigade/amp/grad_scaler.h>
#include <brigade/dist/checks/unsynced_steps.h>
#include <brigade/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

// Called instead of a step. It may call `step`, which returns whether weights have moved, skip it, or run code around
// it.
using OptimizerStepHook = std::function<void(optim::Optimizer& optimizer, const std::function<bool()>& step)>;

class OptimizerSteps {
 public:
  // `precision`: for messages. `expects_averages`: there are other ranks with which an optimizer's gradients should
  // be averaged.
  OptimizerSteps(const amp::GradScalerOptions& options, std::string precision, bool expects_averages)
      : scaler_(options), precision_(std::move(precision)), expects_averages_(expects_averages) {}
  // Runs at the end of training: see tell_of_lone_steps().
  ~OptimizerSteps();
  OptimizerSteps(const OptimizerSteps&) = delete;
  OptimizerSteps& operator=(const OptimizerSteps&) = delete;

  // The optimizer must outlive this object. Throws ValueError for one that was already added: "An optimizer should be
  // passed only once to the `setup` method".
  void add(optim::Optimizer& optimizer, SourceLocation where);
  void set_hook(OptimizerStepHook hook) { hook_ = std::move(hook); }

  // Steps, through the scaler if enabled. Returns false if nothing moved: gradients were not finite, or a hook
  // skipped the step. Throws what Optimizer::step and GradScaler::step throw, with advice for Fabric; then nothing
  // has moved.
  bool step(optim::Optimizer& optimizer, SourceLocation where);
  void zero_grad(optim::Optimizer& optimizer, bool set_to_none, SourceLocation where);
  // Divides the optimizer's gradients by the scale before they are read. Does nothing without a scaler, or the second
  // time in an iteration.
  void unscale(optim::Optimizer& optimizer, SourceLocation where);

  // Warns about each optimizer with which every rank has trained its own model so far. A loop that averages its
  // parameters once in many steps (local SGD) looks the same until its first average, so call this when that average
  // must have happened: when a model is saved, and when training ends.
  void tell_of_lone_steps();

  amp::GradScaler& scaler() noexcept { return scaler_; }
  std::vector<optim::Optimizer*> all() const;

 private:
  struct Entry {
    optim::Optimizer* optimizer;
    bool has_stepped = false;  // since the last update of the scale
    bool is_unscaled = false;
    UnsyncedSteps lone = {};
    uint64_t collectives = 0;  // posted by this thread up to the latest lone step
  };
  Entry& find(const optim::Optimizer& optimizer, SourceLocation where);
  bool step_now(optim::Optimizer& optimizer, SourceLocation where);
  void end_iteration(SourceLocation where);
  // look_for_averages() runs before a step, note_lone_step() after it.
  void look_for_averages(Entry& entry, SourceLocation where) const;
  void note_lone_step(Entry& entry) const;
  static bool are_averaged_since(const Entry& entry);
  static void tell_of(UnsyncedSteps& lone);
  static bool holds_scaled_gradients(const optim::Optimizer& optimizer);

  amp::GradScaler scaler_;
  std::string precision_;
  bool expects_averages_;
  std::vector<Entry> entries_;
  OptimizerStepHook hook_;
};

}  // namespace brigade::dist
