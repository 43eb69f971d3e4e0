// Optimizer: what all optimizers share: parameter groups, gradients to zero, hooks around a step.
#pragma once

#include <brigade/core/tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace brigade::optim {

// State in a form that can be saved: tensors by name ("3.exp_avg": of the 4th parameter) and numbers by name
// ("group0.lr").
struct OptimizerState {
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::vector<std::pair<std::string, double>> numbers;
};

class Optimizer {
 public:
  Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  // Moves every parameter that has a gradient; the others are left alone. Nothing is recorded.
  void step(SourceLocation where = SourceLocation::current());
  // set_to_none: the next backward starts afresh instead of adding to zeros.
  void zero_grad(bool set_to_none = true);

  // All parameters, group after group.
  std::vector<Tensor> parameters() const;
  virtual size_t groups() const noexcept = 0;

  virtual OptimizerState state_dict() const = 0;
  // Throws ValueError that names what is missing or does not fit; then nothing has been changed.
  virtual void load_state_dict(const OptimizerState& state) = 0;

  // Called before and after each step with the caller's line; the first may throw to prevent the step. Returns a
  // handle.
  using StepHook = std::function<void(Optimizer&, SourceLocation)>;
  uint64_t register_step_pre_hook(StepHook hook);
  uint64_t register_step_post_hook(StepHook hook);
  void remove_hook(uint64_t handle) noexcept;

 protected:
  virtual void do_step() = 0;
  virtual const std::vector<Tensor>& group_parameters(size_t group) const = 0;
  // Leaves, of a floating dtype, not in the optimizer yet. Throws ValueError, AutogradError.
  void check_new_parameters(const std::vector<Tensor>& parameters) const;

 private:
  std::vector<std::pair<uint64_t, StepHook>> pre_hooks_;
  std::vector<std::pair<uint64_t, StepHook>> post_hooks_;
  uint64_t next_handle_ = 1;
};

// An optimizer whose groups differ in their Options and whose parameters each have a State. Options offers `check()`
// and `for_each(f)` over (name, number&); State offers `for_each(f)` over (name, Tensor&) and a number `step`.
template <class Options, class State>
class GroupedOptimizer : public Optimizer {
 public:
  struct Group {
    std::vector<Tensor> parameters;
    Options options;
  };
  GroupedOptimizer(std::vector<Tensor> parameters, const Options& options) {
    add_param_group(std::move(parameters), options);
  }
  explicit GroupedOptimizer(std::vector<Group> groups) {
    if (groups.empty()) throw ValueError("optimizer got an empty parameter list");
    for (Group& group : groups)
      add_param_group(std::move(group.parameters), group.options);
  }

  void add_param_group(std::vector<Tensor> parameters, const Options& options) {
    if (parameters.empty()) throw ValueError("optimizer got an empty parameter list");
    options.check();
    check_new_parameters(parameters);
    groups_.push_back({std::move(parameters), options});
  }
  size_t groups() const noexcept override { return groups_.size(); }
  // To change a learning rate between steps.
  Options& options(size_t group = 0) { return groups_.at(group).options; }
  const Options& options(size_t group = 0) const { return groups_.at(group).options; }

  OptimizerState state_dict() const override;
  void load_state_dict(const OptimizerState& state) override;

 protected:
  const std::vector<Tensor>& group_parameters(size_t group) const override { return groups_[group].parameters; }
  State& state_of(const Tensor& parameter) { return states_[parameter.impl()]; }
  const std::vector<Group>& all_groups() const noexcept { return groups_; }

 private:
  std::vector<Group> groups_;
  std::unordered_map<const TensorImpl*, State> states_;  // the groups keep the parameters alive
};

}  // namespace brigade::optim

#include <brigade/optim/detail/grouped_optimizer.h>
