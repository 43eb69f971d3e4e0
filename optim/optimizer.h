// Optimizer: what all optimizers share: parameter groups, gradients to zero, hooks around a step,
// state to save.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/optim/detail/device_lr.h>
#include <brigade/optim/detail/master_weights.h>

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

// State in a form that can be saved: tensors by name ("3.exp_avg": of the 4th parameter, in the
// order of the groups) and numbers by name ("3.step", "group0.lr", "group0.parameters": how many it
// has). The tensors are the optimizer's own, as in PyTorch: clone them to keep them over a step.
struct OptimizerState {
  std::string optimizer;  // "AdamW"; "" is not compared
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::vector<std::pair<std::string, double>> numbers;
};

// How a loss scaler lets a step read its gradients (autograd::ScaledStep).
struct Scaling {
  double grad_factor = 1;  // to be multiplied into each of them
  // What the device knows and the host does not; else undefined.
  Tensor device_factor = {}, device_found_inf = {};
};

class Optimizer {
 public:
  // `made_at`: the line of the program that makes it, where it is known.
  explicit Optimizer(SourceLocation made_at = {});
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer();

  // Moves every parameter that has a gradient, in place, and bumps its version; the others are left
  // alone. Nothing is recorded. Throws what a hook throws, and autograd::ScalerError for gradients
  // that still are as large as a loss scaler has made them, before anything has moved.
  void step(SourceLocation where = SourceLocation::current());
  // set_to_none: the next backward starts afresh instead of adding to zeros.
  void zero_grad(bool set_to_none = true, SourceLocation where = SourceLocation::current());

  // Among all that this process has made, from 1.
  uint64_t serial() const noexcept { return serial_; }
  // The line that has made it; no line where a header of the standard library has (std::make_unique).
  SourceLocation made_at() const noexcept { return made_at_; }
  // Steps that were taken, and those that a loss scaler has left out since gradients were not
  // finite, with the line of the latest.
  uint64_t steps_taken() const noexcept { return steps_; }
  uint64_t steps_skipped() const noexcept { return skipped_; }
  SourceLocation skipped_at() const noexcept { return skipped_at_; }
  // For the loss scaler: the step, unless scaled.found_inf, which other ranks may set. Then nothing
  // moves. With a grad_factor the gradients stay as they are; the scaler has looked at their stamps.
  void step_unless_found(autograd::ScaledStep& scaled, SourceLocation where);
  // The same question without a step.
  void ask_found_inf(autograd::ScaledStep& scaled, SourceLocation where);
  // Whether half parameters move in float32 copies (master weights), as now set.
  virtual bool keeps_master_weights() const { return false; }
  // Whether a grad_factor is taken: by SGD, Adam and AdamW, where no hook might look at the gradients.
  virtual bool takes_grad_factor() const { return false; }
  // Whether a step, as now set, can be left out by the device alone, where the host does not know of it: without hooks
  // SGD's can, since it counts nothing, and that of Adam and AdamW, where the device counts (.capturable).
  virtual bool can_step_unknown() const { return false; }
  bool can_step_scaled() const { return pre_hooks_.empty() && post_hooks_.empty() && takes_grad_factor(); }

  // Tells those who listen that a step is not taken because of what is wrong with its gradients: all ranks that step
  // together stop then. Throws nothing of theirs; the caller throws the fault.
  void refuse_step(const autograd::ScaleFault& fault, SourceLocation where) const noexcept;

  // All parameters, group after group.
  std::vector<Tensor> parameters() const;
  virtual size_t groups() const noexcept = 0;
  // "AdamW"
  std::string name() const;
  // Hyperparameters in words, one group per line: "group 0: lr 0.1, momentum 0.9".
  virtual std::string options_text() const { return ""; }

  // Whether a step depends on those before it (momentum, moments, a count), as now set.
  virtual bool keeps_state() const { return true; }

  // What schedules change between steps (optim/lr_scheduler.h). An optimizer without groups of
  // options need not have them: these throw ValueError then. Throw std::out_of_range for a group
  // that is not there.
  virtual double lr(size_t group = 0) const;
  virtual void set_lr(size_t group, double lr);
  // `momentum`, or else the first of `betas`.
  virtual bool has_momentum() const noexcept { return false; }
  virtual double momentum(size_t group = 0) const;
  virtual void set_momentum(size_t group, double momentum);
  // The learning rate from which schedules reckon: the one at the first call, unless one was set.
  double initial_lr(size_t group);
  void set_initial_lr(size_t group, double lr);

  virtual OptimizerState state_dict() const = 0;
  // Copies the state to the parameters' devices, so that training goes on bit for bit. Throws
  // ValueError that names what is missing, does not fit, or belongs to another kind of optimizer;
  // then nothing has been changed.
  virtual void load_state_dict(const OptimizerState& state, SourceLocation where = SourceLocation::current()) = 0;
  // What puts back the state of now, after a load_state_dict that shall not count. Local, also
  // where state_dict() would need the other ranks; to be called while the optimizer lives and has
  // not stepped.
  virtual std::function<void()> undo_point();

  // Called before and after each step with the caller's line, in the order of registration; a
  // pre-hook may throw to prevent the step. What it does to gradients is there before the ranks of a
  // group compare them. A hook may remove itself. Returns a handle.
  using StepHook = std::function<void(Optimizer&, SourceLocation)>;
  uint64_t register_step_pre_hook(StepHook hook);
  uint64_t register_step_post_hook(StepHook hook);
  void remove_hook(uint64_t handle) noexcept;

 protected:
  virtual void do_step() = 0;
  // The line of the step that is being taken.
  SourceLocation stepping_at() const noexcept { return stepping_at_; }
  // For load_state_dict(): whoever follows the optimizer hears of it with the next step.
  void note_state_loaded(SourceLocation where) noexcept;
  // For state_dict(): what it hands out is the optimizer's own, and may be written to. From now on such writes are
  // followed, on the thread that has made the optimizer.
  void follow_handed_out(const OptimizerState& state) const;
  // Of the parameters that have a state.
  virtual std::vector<autograd::KeptState> kept_state() const;
  const Scaling& scaling() const noexcept { return scaling_; }
  // While it lives, that is the scaling().
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
  // Throws autograd::ScalerError for gradients that would have to be unscaled first.
  void check_scale(std::span<const Tensor> parameters, SourceLocation where) const;
  virtual const std::vector<Tensor>& group_parameters(size_t group) const = 0;
  // The gradient, contiguous; undefined where there is none.
  static Tensor dense_gradient(const Tensor& parameter);
  // Leaves of a floating dtype, of any strides, that are not in the optimizer yet; at least one.
  // Throws ValueError, AutogradError, DTypeError; ShapeError for one whose elements share memory,
  // as after expand().
  void check_new_parameters(const std::vector<Tensor>& parameters) const;

 private:
  // What is said of the next step; `scaled` is null without a scaler.
  autograd::Update announcement(const std::vector<Tensor>& parameters, autograd::ScaledStep* scaled, bool moves,
                                SourceLocation where) const;
  // Announces, and moves what may move.
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
};

// Those that this thread has made and that live, in the order in which they were made: who holds a
// parameter is found by asking them.
std::vector<const Optimizer*> optimizers_of_this_thread();

// Parameters of a group that move in one call of a foreach kernel: of one device and one dtype,
// alike in their key, and dense (copies of those that are not contiguous; their values go back).
template <class State>
struct StepBatch {
  int64_t key;
  std::vector<Tensor> parameters, grads;
  std::vector<State*> states;
  Scaling scaling;
  Tensor device_lr;  // of a group that is capturable, else undefined

  // One tensor of each state; made, and filled, where it is missing.
  std::vector<Tensor> state(Tensor State::*member, double fill = 0) const;
};

// An optimizer whose groups differ in their Options and whose parameters each have a State. Options
// offers `check()` and `for_each(f)` over (name, number&), and may have `master_weights`; State offers
// `for_each(f)` over (name, Tensor&, required), where a required tensor exists from the first step on,
// and a number `step`.
// More numbers of a State: `for_each_number(f)` over (name, number&). A step that depends on the number
// `step` says so by a static `reads_step(options)`: then the ranks compare it after a load.
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
  // The same with a learning rate and defaults beside it: optim::SGD optimizer(net->parameters(), 0.1).
  // A template, so that {} stands for options.
  template <class Number>
  requires std::is_arithmetic_v<Number> && requires(Options options) { options.lr; }
  GroupedOptimizer(std::vector<Tensor> parameters, Number lr, SourceLocation where = SourceLocation::current())
      : GroupedOptimizer(std::move(parameters), Options{.lr = static_cast<double>(lr)}, where) {}
  // Several: optim::SGD optimizer({{body, {.lr = 0.1}}, {head, {.lr = 0.01}}}).
  explicit GroupedOptimizer(std::vector<Group> groups, SourceLocation where = SourceLocation::current())
      : Optimizer(where) {
    if (groups.empty()) throw ValueError("optimizer got an empty parameter list");
    defaults_ = groups.front().options;
    for (Group& group : groups)
      add_param_group(std::move(group.parameters), group.options);
  }

  // Another group, with the options of the constructor (of its first group) unless given. Throws as
  // the constructors.
  void add_param_group(std::vector<Tensor> parameters) { add_param_group(std::move(parameters), defaults_); }
  void add_param_group(std::vector<Tensor> parameters, const Options& options) {
    options.check();
    check_new_parameters(parameters);
    groups_.push_back({std::move(parameters), options});
  }
  size_t groups() const noexcept override { return groups_.size(); }
  // Moves those of `parameters` that have a gradient, as a part of the step of an optimizer around
  // this one: no hook is called, and nothing is announced. Gradients are multiplied by `grad_factor`
  // as they are read. Throws autograd::ScalerError as step().
  void step_part(std::span<const Tensor> parameters, double grad_factor = 1,
                 SourceLocation where = SourceLocation::current());
  // To change a learning rate between steps. Throws std::out_of_range.
  Options& options(size_t group = 0) { return groups_.at(group).options; }
  std::string options_text() const override;
  const Options& options(size_t group = 0) const { return groups_.at(group).options; }

  double lr(size_t group = 0) const override { return options(group).lr; }
  // Of a group that is capturable also for steps that have been captured; options() reach the next step of one's own.
  void set_lr(size_t group, double lr) override;
  bool has_momentum() const noexcept override { return kHasMomentum; }
  double momentum(size_t group = 0) const override;
  void set_momentum(size_t group, double momentum) override;

  bool keeps_master_weights() const override;
  // The float32 copy of a parameter; undefined where it has none (yet).
  Tensor master_weight(const Tensor& parameter) const { return masters_.find(parameter); }

  OptimizerState state_dict() const override;
  void load_state_dict(const OptimizerState& state, SourceLocation where = SourceLocation::current()) override;

 protected:
  std::vector<autograd::KeptState> kept_state() const override;
  const std::vector<Tensor>& group_parameters(size_t group) const override { return groups_[group].parameters; }
  // Made when missing: ask only for a parameter that is about to move.
  State& state_of(const Tensor& parameter) { return states_[parameter.impl()]; }
  const std::vector<Group>& all_groups() const noexcept { return groups_; }
  // A step of all groups: calls run(options, batch) for batches of the parameters that have
  // gradients; what a batch has in common is key_of(state), or key_of(options, state). Afterwards
  // their versions and steps have grown by one. In the place of half parameters of a group with
  // master weights stand their float32 copies, with gradients to match.
  template <class KeyOf, class Run>
  void step_in_batches(KeyOf&& key_of, Run&& run);

 private:
  // Throws ValueError for what cannot be captured into a CUDA graph.
  void check_capture(const Group& group, const detail::Batch& members, std::span<State* const> states) const;

  static constexpr bool kHasMomentum = requires(Options o) { o.momentum; }
  || requires(Options o) { o.betas[0]; };
  Options defaults_;
  std::vector<Group> groups_;
  std::unordered_map<const TensorImpl*, State> states_;  // the groups keep the parameters alive
  detail::MasterWeights masters_;
  std::vector<detail::DeviceLr> device_lrs_;  // of the first groups
  // Set during step_part(): nothing else moves.
  std::optional<std::unordered_set<const TensorImpl*>> part_;
};

}  // namespace brigade::optim

#include <brigade/optim/detail/grouped_optimizer.h>
