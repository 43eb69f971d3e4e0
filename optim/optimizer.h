// Optimizer: the base class of all optimizers, with parameter groups, zero_grad, step hooks and a state to save.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/optim/detail/device_state.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace brigade::autograd {
class FollowedWrites;
struct KeptState;
struct ScaleFault;
struct ScaledStep;
struct Update;
}  // namespace brigade::autograd

namespace brigade::optim {

namespace detail {
struct Batch;
}

// State in a form that can be saved: tensors by name ("3.exp_avg" is that of the 4th parameter, in the order of the
// groups) and numbers by name ("3.step", "group0.lr", and "group0.parameters", the size of the group). The tensors
// are the optimizer's own, as in PyTorch: clone them to keep their values over a step.
struct OptimizerState {
  std::string optimizer;  // "AdamW"; "" is not compared
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::vector<std::pair<std::string, double>> numbers;
};

// How a step reads its gradients for a loss scaler (autograd::ScaledStep).
struct Scaling {
  double grad_factor = 1;  // multiplied into each gradient
  // Values that only the device knows; undefined otherwise.
  Tensor device_factor = {}, device_found_inf = {};
};

class Optimizer {
 public:
  // `made_at`: the line that makes the optimizer, if known.
  explicit Optimizer(SourceLocation made_at = {});
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer();

  // Moves every parameter that has a gradient, in place, and bumps its version; the others are left alone. Nothing is
  // recorded. Throws what a hook throws, and, before anything has moved, autograd::ScalerError for gradients that still
  // carry a loss scaler's factor.
  void step(SourceLocation where = SourceLocation::current());
  // set_to_none: the next backward starts afresh instead of adding to zeros.
  void zero_grad(bool set_to_none = true, SourceLocation where = SourceLocation::current());

  // The number of this optimizer among all that the process has made, from 1.
  uint64_t serial() const noexcept { return serial_; }
  // The line that made it; none if a header of the standard library did (std::make_unique).
  SourceLocation made_at() const noexcept { return made_at_; }
  // Steps taken, and steps that a loss scaler skipped because gradients were not finite, with the line of the latest
  // skip.
  uint64_t steps_taken() const noexcept { return steps_; }
  uint64_t steps_skipped() const noexcept { return skipped_; }
  SourceLocation skipped_at() const noexcept { return skipped_at_; }
  // For the loss scaler: steps, unless scaled.found_inf is set, which other ranks may do. Then nothing moves. With a
  // grad_factor the gradients are not modified; the scaler has checked their stamps.
  void step_unless_found(autograd::ScaledStep& scaled, SourceLocation where);
  // Announces such a step to set scaled.found_inf, without taking it.
  void ask_found_inf(autograd::ScaledStep& scaled, SourceLocation where);
  // Whether half parameters move in float32 copies (master weights), with the current options.
  virtual bool keeps_master_weights() const { return false; }
  // Whether the optimizer supports a grad_factor: SGD, Adam and AdamW do. can_step_scaled() also excludes hooks, which
  // might read the gradients.
  virtual bool takes_grad_factor() const { return false; }
  // Whether, with the current options, the device alone can skip a step without the host knowing. Without hooks, SGD
  // can, because it counts nothing; Adam and AdamW can if the device counts (.capturable).
  virtual bool can_step_unknown() const { return false; }
  bool can_step_scaled() const { return pre_hooks_.empty() && post_hooks_.empty() && takes_grad_factor(); }

  // Notifies listeners that a step is not taken because of a fault of its gradients, so that all ranks that step
  // together stop. Drops the exceptions of listeners; the caller throws the fault.
  void refuse_step(const autograd::ScaleFault& fault, SourceLocation where) const noexcept;

  // All parameters, group after group.
  std::vector<Tensor> parameters() const;
  virtual size_t groups() const noexcept = 0;
  // "AdamW"
  std::string name() const;
  // Hyperparameters as text, one group per line: "group 0: lr 0.1, momentum 0.9".
  virtual std::string options_text() const { return ""; }

  // Whether a step depends on those before it (momentum, moments, a count), with the current options.
  virtual bool keeps_state() const { return true; }

  // The values that schedules change between steps (optim/lr_scheduler.h). For an optimizer without groups of options,
  // these throw ValueError. They throw std::out_of_range for a group that does not exist.
  virtual double lr(size_t group = 0) const;
  // In a capturable group this also reaches captured steps; a change of options() reaches only the next step that is
  // not a replay. `by`: for messages, the function that `where` calls.
  void set_lr(size_t group, double lr, SourceLocation where = SourceLocation::current(), std::string by = "set_lr()");
  // `momentum`, or otherwise the first of `betas`.
  virtual bool has_momentum() const noexcept { return false; }
  virtual double momentum(size_t group = 0) const;
  virtual void set_momentum(size_t group, double momentum);
  // The learning rate from which schedules start: the rate at the first call, unless one was set.
  double initial_lr(size_t group);
  void set_initial_lr(size_t group, double lr);
  // The latest change of a group's rate by set_lr().
  struct RateChange {
    double lr;
    SourceLocation where;
    std::string by;  // "StepLR.step()"
  };
  const std::map<size_t, RateChange>& rate_changes() const noexcept { return rate_changes_; }
  // options_text() as the groups were made, if known.
  const std::string& made_with() const noexcept { return made_with_; }

  virtual OptimizerState state_dict() const = 0;
  // Copies the state to the parameters' devices, so that training continues bit for bit. Throws a ValueError that names
  // the entries that are missing, do not fit, or belong to another kind of optimizer; then nothing has been changed.
  virtual void load_state_dict(const OptimizerState& state, SourceLocation where = SourceLocation::current()) = 0;
  // Returns a function that restores the current state, to undo a load_state_dict. It is local even if state_dict()
  // would need the other ranks. Call it while the optimizer lives and before it has stepped.
  virtual std::function<void()> undo_point();

  // Called before and after each step with the caller's line, in the order of registration; a pre-hook may throw to
  // prevent the step. Its changes to gradients are made before the ranks of a group compare them. A hook may remove
  // itself. Returns a handle.
  using StepHook = std::function<void(Optimizer&, SourceLocation)>;
  uint64_t register_step_pre_hook(StepHook hook);
  uint64_t register_step_post_hook(StepHook hook);
  void remove_hook(uint64_t handle) noexcept;

 protected:
  virtual void do_step() = 0;
  virtual void do_set_lr(size_t group, double lr);
  // The line of the step that is being taken.
  SourceLocation stepping_at() const noexcept { return stepping_at_; }
  // For load_state_dict(): listeners learn of it with the next step.
  void note_state_loaded(SourceLocation where) noexcept;
  // For state_dict(): the returned tensors are the optimizer's own and may be written to. From now on such writes are
  // followed, on the thread that made the optimizer.
  void follow_handed_out(const OptimizerState& state) const;
  // The states of the parameters that have one.
  virtual std::vector<autograd::KeptState> kept_state() const;
  const Scaling& scaling() const noexcept { return scaling_; }
  // RAII: sets scaling().
  class ScalingGuard {
   public:
    ScalingGuard(Optimizer& optimizer, Scaling scaling) : optimizer_(optimizer) {
      optimizer_.scaling_ = std::move(scaling);
    }
    ~ScalingGuard() { optimizer_.scaling_ = {}; }
    ScalingGuard(const ScalingGuard&) = delete;
    ScalingGuard& operator=(const ScalingGuard&) = delete;

   private:
    Optimizer& optimizer_;
  };
  // Throws autograd::ScalerError for gradients that have to be unscaled first.
  void check_scale(std::span<const Tensor> parameters, SourceLocation where) const;
  virtual const std::vector<Tensor>& group_parameters(size_t group) const = 0;
  std::string made_with_;
  // The gradient, contiguous; undefined if there is none.
  static Tensor dense_gradient(const Tensor& parameter);
  // Requires at least one parameter; all are leaves of a floating dtype, of any strides, that are not in the optimizer
  // yet. Throws ValueError, AutogradError, DTypeError; ShapeError for one whose elements share memory, as after
  // expand().
  void check_new_parameters(const std::vector<Tensor>& parameters) const;

 private:
  // The announcement of the next step; `scaled` is null without a scaler.
  autograd::Update announcement(const std::vector<Tensor>& parameters, autograd::ScaledStep* scaled, bool moves,
                                SourceLocation where) const;
  // Announces a step and takes it, unless it must not move.
  void announced_step(autograd::ScaledStep* scaled, bool moves, SourceLocation where);
  void run_pre_hooks(SourceLocation where);
  void move_all(const std::vector<Tensor>& all, SourceLocation where);

  std::vector<std::pair<uint64_t, StepHook>> pre_hooks_;
  std::vector<std::pair<uint64_t, StepHook>> post_hooks_;
  uint64_t next_handle_ = 1;
  SourceLocation made_at_;
  SourceLocation state_loaded_at_;  // since the latest step
  std::thread::id made_on_;
  mutable std::vector<std::unique_ptr<autograd::FollowedWrites>> handed_out_;
  SourceLocation stepping_at_;
  Scaling scaling_;
  uint64_t serial_ = 0;
  uint64_t steps_ = 0, skipped_ = 0;
  SourceLocation skipped_at_;
  std::map<size_t, double> initial_lrs_;
  std::map<size_t, RateChange> rate_changes_;
};

// The living optimizers that this thread has made, in the order of creation; used to find the optimizer that holds a
// parameter.
std::vector<const Optimizer*> optimizers_of_this_thread();

// Parameters of a group that move in one call of a foreach kernel: with one device, dtype and key, and dense (those
// that are not contiguous are copied, and the values copied back).
template <class State>
struct StepBatch {
  int64_t key;
  std::vector<Tensor> parameters, grads;
  std::vector<State*> states;
  Scaling scaling;
  Tensor device_lr;  // of a capturable group; otherwise undefined

  // One tensor of each state; created and filled if missing.
  std::vector<Tensor> state(Tensor State::*member, double fill = 0) const;
};

// An optimizer whose groups differ in their Options and whose parameters each have a State. Options
// offers `check()` and `for_each(f)` over (name, number&), and may have `master_weights`; State offers
// `for_each(f)` over (name, Tensor&, required), where a required tensor exists from the first step on,
// and a number `step`.
// More numbers of a State: `for_each_number(f)` over (name, number&). A step that depends on the number
// `step` has a static `reads_step(options)`: then the ranks compare it after a load.
template <class Options, class State>
class GroupedOptimizer : public Optimizer {
 public:
  struct Group {
    std::vector<Tensor> parameters;
    Options options;
  };
  // One group. Throws ValueError: "optimizer got an empty parameter list", "Invalid learning rate:
  // -1", "some parameters appear in more than one parameter group"; AutogradError: "can't optimize
  // a non-leaf Tensor".
  GroupedOptimizer(std::vector<Tensor> parameters, const Options& options,
                   SourceLocation where = SourceLocation::current())
      : Optimizer(where), defaults_(options) {
    add_param_group(std::move(parameters), options);
  }
  // The same with a learning rate and otherwise default options: optim::SGD optimizer(net->parameters(), 0.1). A
  // template, so that {} stands for options.
  template <class Number>
  requires std::is_arithmetic_v<Number> && requires(Options options) { options.lr; }
  GroupedOptimizer(std::vector<Tensor> parameters, Number lr, SourceLocation where = SourceLocation::current())
      : GroupedOptimizer(std::move(parameters), Options{.lr = static_cast<double>(lr)}, where) {}
  // Several groups: optim::SGD optimizer({{body, {.lr = 0.1}}, {head, {.lr = 0.01}}}).
  explicit GroupedOptimizer(std::vector<Group> groups, SourceLocation where = SourceLocation::current())
      : Optimizer(where) {
    if (groups.empty()) throw ValueError("optimizer got an empty parameter list");
    defaults_ = groups.front().options;
    for (Group& group : groups)
      add_param_group(std::move(group.parameters), group.options);
  }

  // Adds a group, with the options of the constructor (of its first group) unless given. Throws like the constructors.
  void add_param_group(std::vector<Tensor> parameters) { add_param_group(std::move(parameters), defaults_); }
  void add_param_group(std::vector<Tensor> parameters, const Options& options);
  size_t groups() const noexcept override { return groups_.size(); }
  // Moves those of `parameters` that have a gradient, as a part of an enclosing optimizer's step: no hook is called,
  // and nothing is announced. Gradients are multiplied by `grad_factor` as they are read. Throws autograd::ScalerError
  // like step().
  void step_part(std::span<const Tensor> parameters, double grad_factor = 1,
                 SourceLocation where = SourceLocation::current());
  // Allows changes between steps, such as of the learning rate. Throws std::out_of_range.
  Options& options(size_t group = 0) { return groups_.at(group).options; }
  std::string options_text() const override;
  const Options& options(size_t group = 0) const { return groups_.at(group).options; }

  double lr(size_t group = 0) const override { return options(group).lr; }
  bool has_momentum() const noexcept override { return kHasMomentum; }
  double momentum(size_t group = 0) const override;
  void set_momentum(size_t group, double momentum) override;

  bool keeps_master_weights() const override;
  // The float32 copy of a parameter; undefined if it has none (yet).
  Tensor master_weight(const Tensor& parameter) const { return masters_.find(parameter); }

  OptimizerState state_dict() const override;
  void load_state_dict(const OptimizerState& state, SourceLocation where = SourceLocation::current()) override;

 protected:
  void do_set_lr(size_t group, double lr) override;
  std::vector<autograd::KeptState> kept_state() const override;
  const std::vector<Tensor>& group_parameters(size_t group) const override { return groups_[group].parameters; }
  // Creates the state if it is missing: call it only for a parameter that is about to move.
  State& state_of(const Tensor& parameter) { return states_[parameter.impl()]; }
  const std::vector<Group>& all_groups() const noexcept { return groups_; }
  // A step of all groups: calls run(options, batch) for batches of the parameters that have gradients; the parameters
  // of a batch share key_of(state), or key_of(options, state). Afterwards their versions and steps have grown by one.
  // Half parameters of a group with master weights are replaced by their float32 copies, with gradients to match.
  template <class KeyOf, class Run>
  void step_in_batches(KeyOf&& key_of, Run&& run);

 private:
  // Throws ValueError for a step that cannot be captured into a CUDA graph.
  void check_capture(const Group& group, const detail::Batch& members, std::span<State* const> states) const;

  static constexpr bool kHasMomentum = requires(Options o) { o.momentum; }
  || requires(Options o) { o.betas[0]; };
  Options defaults_;
  std::vector<Group> groups_;
  std::unordered_map<const TensorImpl*, State> states_;  // the groups keep the parameters alive
  detail::MasterWeights masters_;
  std::vector<detail::DeviceLr> device_lrs_;  // one per group that has stepped
  // Set during step_part(): only these parameters move.
  std::optional<std::unordered_set<const TensorImpl*>> part_;
};

}  // namespace brigade::optim

#include <brigade/optim/detail/grouped_optimizer.h>
