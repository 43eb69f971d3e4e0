// OptimizerSteps: the optimizers of a training loop, their steps, and the loss scale that they share.
//
// With a loss scaler an iteration has to end with one update(), after the steps of all its optimizers
// and before the next loss is scaled. A loop written by hand says nowhere where that is, so it is
// found out: the iteration has ended when every optimizer has stepped; or when one that has stepped
// is cleared, while no other holds gradients that are still scaled. So gradients are always divided by
// the scale that they were multiplied with, in whatever order the loop steps and clears.
#pragma once

#include <brigade/amp/grad_scaler.h>
#include <brigade/dist/checks/lone_steps.h>
#include <brigade/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

// Called in the place of a step: it may call `step`, which returns whether weights have moved, or
// leave it, or do something before and after it.
using OptimizerStepHook = std::function<void(optim::Optimizer& optimizer, const std::function<bool()>& step)>;

class OptimizerSteps {
 public:
  // `precision`: for messages. `expects_averages`: there are other ranks, whose gradients those of an optimizer are to be
  // averaged with.
  OptimizerSteps(const amp::GradScalerOptions& options, std::string precision, bool expects_averages)
      : scaler_(options), precision_(std::move(precision)), expects_averages_(expects_averages) {}
  // The end of the training: see tell_of_lone_steps().
  ~OptimizerSteps();
  OptimizerSteps(const OptimizerSteps&) = delete;
  OptimizerSteps& operator=(const OptimizerSteps&) = delete;

  // It has to live as long as this. Throws ValueError for one that is here already: "An optimizer should be passed only
  // once to the `setup` method".
  void add(optim::Optimizer& optimizer, SourceLocation where);
  void set_hook(OptimizerStepHook hook) { hook_ = std::move(hook); }

  // By the scaler, if there is one. False where nothing moved: gradients were not finite, or a hook
  // left the step out. Throws what Optimizer::step and GradScaler::step throw, with what to do in a
  // Fabric; then nothing has moved.
  bool step(optim::Optimizer& optimizer, SourceLocation where);
  void zero_grad(optim::Optimizer& optimizer, bool set_to_none, SourceLocation where);
  // Divides its gradients by the scale before they are read; nothing to do without a scaler, and the
  // second time in an iteration.
  void unscale(optim::Optimizer& optimizer, SourceLocation where);

  // Warns of each optimizer by which every rank has so far trained a model of its own. A loop that averages its parameters
  // once in many steps (local SGD) looks the same until it has done so: this is for the moments by which it must have, when
  // a model is saved, and when the training ends.
  void tell_of_lone_steps();

  amp::GradScaler& scaler() noexcept { return scaler_; }
  std::vector<optim::Optimizer*> all() const;

 private:
  struct Entry {
    optim::Optimizer* optimizer;
    bool has_stepped = false;  // since the scale was last updated
    bool is_unscaled = false;
    LoneSteps lone = {};
    uint64_t collectives = 0;  // posted before the latest of them by this thread
  };
  Entry& find(const optim::Optimizer& optimizer, SourceLocation where);
  bool step_now(optim::Optimizer& optimizer, SourceLocation where);
  void end_iteration(SourceLocation where);
  // Before a step, and after it.
  void look_for_averages(Entry& entry, SourceLocation where) const;
  void note_lone_step(Entry& entry) const;
  static bool are_averaged_since(const Entry& entry);
  static void tell_of(LoneSteps& lone);
  static bool holds_scaled_gradients(const optim::Optimizer& optimizer);

  amp::GradScaler scaler_;
  std::string precision_;
  bool expects_averages_;
  std::vector<Entry> entries_;
  OptimizerStepHook hook_;
};

}  // namespace brigade::dist
