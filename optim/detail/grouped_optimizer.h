// The template part of GroupedOptimizer: steps in batches, saving and loading.
#pragma once

#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/listener.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/detail/batches.h>
#include <brigade/optim/detail/device_state.h>
#include <brigade/optim/optimizer.h>

#include <algorithm>
#include <type_traits>
#include <unordered_map>

namespace brigade::optim {

namespace detail {

// Reads a saved state by name and remembers which entries were read, so that the others can be named.
class StateReader {
 public:
  explicit StateReader(const OptimizerState& state);
  const double* number(const std::string& name);
  // Throws ValueError when it is missing.
  double required_number(const std::string& name);
  // A copy on the parameter's device in `dtype`, or an undefined tensor. Throws ValueError unless it
  // has the parameter's shape and that dtype (a half one may become float32), and when `required` and
  // missing.
  Tensor tensor_like(const std::string& name, const Tensor& parameter, DType dtype, bool required);
  // Throws a ValueError that names the entries that were not read.
  void finish() const;

 private:
  struct Entry {
    const Tensor* tensor = nullptr;
    double number = 0;
    bool used = false;
  };
  std::unordered_map<std::string, Entry> entries_;
};

template <class State>
concept HasNumbers = requires(State state) {
  state.for_each_number([](const std::string&, auto&) {});
};

// Whether a step depends on the number of steps before it.
template <class State, class Options>
bool reads_step(const Options& options) {
  if constexpr (requires { State::reads_step(options); }) {
    return State::reads_step(options);
  } else {
    return false;
  }
}

// Pieces of options_text().
void begin_group_text(std::string& text, size_t group);
void add_option_text(std::string& text, const std::string& name, double value);
// The key is absent from options_text() and from saved states if the option is not set.
inline constexpr const char* kMasterWeights = "master_weights";
// A parameter's copy in a state: "3.master_weight".
inline constexpr const char* kMasterWeight = "master_weight";
template <class Options>
bool in_copies(const Options& options) {
  if constexpr (requires { options.master_weights; }) {
    return options.master_weights;
  } else {
    return false;
  }
}
template <class Options>
bool is_capturable(const Options& options) {
  if constexpr (requires { options.capturable; }) {
    return options.capturable;
  } else {
    return false;
  }
}
// The number of steps that a parameter has taken.
template <class State>
int64_t steps_of(const State& state) {
  if constexpr (requires { state.steps(); }) {
    return state.steps();
  } else {
    return state.step;
  }
}
template <class Options>
void add_group_text(std::string& text, size_t group, Options options) {
  begin_group_text(text, group);
  options.for_each(
      [&](const std::string& name, auto& value) { add_option_text(text, name, static_cast<double>(value)); });
  if (in_copies(options)) add_option_text(text, kMasterWeights, 1);
  // `capturable` is left out: it only selects where steps are counted and does not change how a parameter moves.
}
template <class Groups>
std::string options_text(const Groups& groups) {
  std::string text;
  for (size_t g = 0; g < groups.size(); ++g)
    add_group_text(text, g, groups[g].options);
  return text;
}
// Throws ValueError.
void check_kind(const std::string& saved, const std::string& own);
void check_group_size(size_t group, double saved, size_t own);

// The momentum among the options of a group: `momentum`, or otherwise the first of `betas`; null if there is neither.
template <class Options>
auto* momentum_of(Options& options) {
  if constexpr (requires { options.momentum; }) {
    return &options.momentum;
  } else if constexpr (requires { options.betas[0]; }) {
    return &options.betas[0];
  } else {
    return static_cast<double*>(nullptr);
  }
}

inline std::string group_key(size_t group, const std::string& name) {
  return "group" + std::to_string(group) + "." + name;
}

}  // namespace detail

template <class Options, class State>
void GroupedOptimizer<Options, State>::add_param_group(std::vector<Tensor> parameters, const Options& options) {
  options.check();
  check_new_parameters(parameters);
  detail::add_group_text(made_with_, groups_.size(), options);
  groups_.push_back({std::move(parameters), options});
}

template <class Options, class State>
std::string GroupedOptimizer<Options, State>::options_text() const {
  return detail::options_text(groups_);
}

template <class State>
std::vector<Tensor> StepBatch<State>::state(Tensor State::*member, double fill) const {
  std::vector<Tensor> result;
  result.reserve(states.size());
  for (size_t i = 0; i < states.size(); ++i) {
    Tensor& tensor = states[i]->*member;
    if (!tensor.defined()) {
      tensor = empty_like(parameters[i]);
      kernels::fill(tensor, fill);
    }
    result.push_back(tensor);
  }
  return result;
}

template <class Options, class State>
template <class KeyOf, class Run>
void GroupedOptimizer<Options, State>::step_in_batches(KeyOf&& key_of, Run&& run) {
  device_lrs_.resize(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    std::vector<Tensor> grads;
    grads.reserve(group.parameters.size());
    for (const Tensor& parameter : group.parameters)
      grads.push_back(!part_ || part_->contains(parameter.impl()) ? dense_gradient(parameter) : Tensor());
    std::vector<State*> states(grads.size());
    const auto key = [&](size_t i) -> int64_t {
      const State& state = *(states[i] = &state_of(group.parameters[i]));
      if constexpr (std::is_invocable_v<KeyOf, const Options&, const State&>) {
        return key_of(group.options, state);
      } else {
        return key_of(state);
      }
    };
    for (const detail::Batch& members : detail::batches(grads, key)) {
      check_capture(group, members, states);
      const bool in_copies = detail::in_copies(group.options) && is_half(members.dtype);
      const std::vector<Tensor> parameters = members.of(group.parameters);
      StepBatch<State> batch{.key = members.key,
                             .parameters = in_copies ? masters_.of(parameters) : members.dense(group.parameters),
                             .grads = members.of(grads),
                             .states = {},
                             .scaling = this->scaling(),
                             .device_lr = {}};
      if (detail::is_capturable(group.options))
        batch.device_lr = device_lrs_[g].beside(batch.parameters.front(), group.options.lr, this->stepping_at());
      for (size_t k = 0; in_copies && k < batch.grads.size(); ++k)
        batch.grads[k] = kernels::cast(batch.grads[k], kFloat32);
      batch.states.reserve(members.members.size());
      for (const size_t i : members.members)
        batch.states.push_back(states[i]);
      run(group.options, std::as_const(batch));
      if (in_copies) {
        masters_.round_into(parameters);
      } else {
        members.write_back(group.parameters, batch.parameters);
      }
      for (const size_t i : members.members) {
        ++states[i]->step;
        group.parameters[i].bump_version();
      }
      // Do this after all version bumps: parameters may share memory, and so a version.
      for (size_t k = 0; in_copies && k < parameters.size(); ++k)
        masters_.settle(parameters[k]);
    }
  }
}

// Rejects steps that must not be captured: each replay repeats the captured work.
template <class Options, class State>
void GroupedOptimizer<Options, State>::check_capture(const Group& group, const detail::Batch& members,
                                                     std::span<State* const> states) const {
  if (!detail::is_captured(group.parameters[members.members.front()])) return;
  if (detail::reads_step<State>(group.options) && !detail::is_capturable(group.options))
    detail::throw_counts_on_host(
        this->name(), requires { group.options.capturable; }, this->stepping_at());
  for (const size_t i : members.members) {
    const bool keeps = keeps_state() || (detail::in_copies(group.options) && is_half(members.dtype));
    if (keeps && states[i]->step == 0)
      detail::throw_first_in_capture(this->name(), group.parameters[i], this->stepping_at());
  }
}

template <class Options, class State>
void GroupedOptimizer<Options, State>::step_part(std::span<const Tensor> parameters, double grad_factor,
                                                 SourceLocation where) {
  if (parameters.empty()) return;
  const typename Optimizer::ScalingGuard scaling(*this, {.grad_factor = grad_factor});
  this->check_scale(parameters, where);
  const NoGradGuard no_grad(where);
  const struct Part {
    decltype(part_)& of;
    ~Part() { of.reset(); }
  } ends{part_};
  part_.emplace();
  for (const Tensor& parameter : parameters)
    part_->insert(parameter.impl());
  this->do_step();
}

template <class Options, class State>
void GroupedOptimizer<Options, State>::do_set_lr(size_t group, double lr) {
  options(group).lr = lr;
  if (group < device_lrs_.size()) device_lrs_[group].set(lr);
}

template <class Options, class State>
double GroupedOptimizer<Options, State>::momentum(size_t group) const {
  const auto* const found = detail::momentum_of(options(group));
  return found ? *found : Optimizer::momentum(group);
}

template <class Options, class State>
void GroupedOptimizer<Options, State>::set_momentum(size_t group, double momentum) {
  auto* const found = detail::momentum_of(options(group));
  if (!found) return Optimizer::set_momentum(group, momentum);
  *found = momentum;
}

template <class Options, class State>
bool GroupedOptimizer<Options, State>::keeps_master_weights() const {
  return std::all_of(groups_.begin(), groups_.end(),
                     [](const Group& group) { return detail::in_copies(group.options); });
}

template <class Options, class State>
OptimizerState GroupedOptimizer<Options, State>::state_dict() const {
  OptimizerState result;
  result.optimizer = name();
  size_t index = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    result.numbers.emplace_back(detail::group_key(g, "parameters"), static_cast<double>(groups_[g].parameters.size()));
    Options options = groups_[g].options;
    options.for_each([&](const std::string& name, auto& value) {
      result.numbers.emplace_back(detail::group_key(g, name), static_cast<double>(value));
    });
    if (detail::in_copies(options)) result.numbers.emplace_back(detail::group_key(g, detail::kMasterWeights), 1.0);
    for (const Tensor& parameter : groups_[g].parameters) {
      const std::string prefix = std::to_string(index++) + ".";
      const auto found = states_.find(parameter.impl());
      if (found == states_.end()) continue;
      State state = found->second;
      result.numbers.emplace_back(prefix + "step", static_cast<double>(detail::steps_of(state)));
      if constexpr (detail::HasNumbers<State>) {
        state.for_each_number([&](const std::string& name, auto& value) {
          result.numbers.emplace_back(prefix + name, static_cast<double>(value));
        });
      }
      state.for_each([&](const std::string& name, Tensor& tensor, bool) {
        if (tensor.defined()) result.tensors.emplace_back(prefix + name, tensor);
      });
      if (const Tensor master = masters_.find(parameter); master.defined())
        result.tensors.emplace_back(prefix + detail::kMasterWeight, master);
    }
  }
  this->follow_handed_out(result);
  return result;
}

template <class Options, class State>
void GroupedOptimizer<Options, State>::load_state_dict(const OptimizerState& state, SourceLocation where) {
  detail::check_kind(state.optimizer, name());
  detail::StateReader reader(state);
  std::vector<Group> groups = groups_;
  std::unordered_map<const TensorImpl*, State> states;
  detail::MasterWeights masters;
  size_t index = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    detail::check_group_size(g, reader.required_number(detail::group_key(g, "parameters")),
                             groups[g].parameters.size());
    groups[g].options.for_each([&](const std::string& name, auto& value) {
      value = static_cast<std::remove_reference_t<decltype(value)>>(reader.required_number(detail::group_key(g, name)));
    });
    if constexpr (requires { groups[g].options.master_weights; }) {
      if (const double* saved = reader.number(detail::group_key(g, detail::kMasterWeights)))
        groups[g].options.master_weights = *saved != 0;
    }
    groups[g].options.check();
    for (const Tensor& parameter : groups[g].parameters) {
      const std::string prefix = std::to_string(index++) + ".";
      const double* step = reader.number(prefix + "step");
      if (!step) continue;  // it had never moved
      State& own = states[parameter.impl()];
      own.step = static_cast<int64_t>(*step);
      if constexpr (detail::HasNumbers<State>) {
        own.for_each_number([&](const std::string& name, auto& value) {
          value = static_cast<std::remove_reference_t<decltype(value)>>(reader.required_number(prefix + name));
        });
      }
      const bool in_copy = detail::in_copies(groups[g].options) && is_half(parameter.dtype());
      const DType dtype = in_copy ? kFloat32 : parameter.dtype();
      own.for_each([&](const std::string& name, Tensor& tensor, bool required) {
        tensor = reader.tensor_like(prefix + name, parameter, dtype, required);
      });
      if (!in_copy) continue;
      // A state that was saved without a copy starts from the parameter's current values.
      const Tensor master = reader.tensor_like(prefix + detail::kMasterWeight, parameter, dtype, false);
      if (master.defined()) masters.put(parameter, master);
    }
  }
  reader.finish();
  groups_ = std::move(groups);
  states_ = std::move(states);
  masters_ = std::move(masters);
  note_state_loaded(where);
}

template <class Options, class State>
std::vector<autograd::KeptState> GroupedOptimizer<Options, State>::kept_state() const {
  std::vector<autograd::KeptState> result;
  size_t index = 0;
  for (const Group& group : groups_) {
    for (const Tensor& parameter : group.parameters) {
      const size_t position = index++;
      const auto found = states_.find(parameter.impl());
      if (found == states_.end()) continue;
      autograd::KeptState kept{.position = position, .tensors = {}};
      if (detail::reads_step<State>(group.options)) kept.step = found->second.step;
      State state = found->second;
      state.for_each([&](const std::string&, Tensor& tensor, bool) {
        if (tensor.defined()) kept.tensors.push_back(tensor);
      });
      if (const Tensor master = masters_.find(parameter); master.defined()) kept.tensors.push_back(master);
      result.push_back(std::move(kept));
    }
  }
  return result;
}

}  // namespace brigade::optim
