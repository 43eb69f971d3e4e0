// What GroupedOptimizer does with its groups: steps in batches, saving and loading.
#pragma once

#include <brigade/autograd/grad_mode.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/detail/batches.h>
#include <brigade/optim/optimizer.h>

#include <type_traits>
#include <unordered_map>

namespace brigade::optim {

namespace detail {

// Reads a saved state by name and remembers what was read, so that what is left over can be named.
class StateReader {
 public:
  explicit StateReader(const OptimizerState& state);
  const double* number(const std::string& name);
  // Throws ValueError when it is missing.
  double required_number(const std::string& name);
  // A copy on the parameter's device, or an undefined tensor. Throws ValueError unless it has the
  // parameter's shape and dtype, and when `required` and missing.
  Tensor tensor_like(const std::string& name, const Tensor& parameter, bool required);
  // Throws ValueError that names the entries that were not asked for.
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

// Pieces of options_text().
void begin_group_text(std::string& text, size_t group);
void add_option_text(std::string& text, const std::string& name, double value);
template <class Groups>
std::string options_text(const Groups& groups) {
  std::string text;
  for (size_t g = 0; g < groups.size(); ++g) {
    begin_group_text(text, g);
    auto options = groups[g].options;
    options.for_each(
        [&](const std::string& name, auto& value) { add_option_text(text, name, static_cast<double>(value)); });
  }
  return text;
}
// Throws ValueError.
void check_kind(const std::string& saved, const std::string& own);
void check_group_size(size_t group, double saved, size_t own);

// The momentum among the options of a group: `momentum`, or else the first of `betas`; null where
// there is neither.
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
  for (const Group& group : groups_) {
    std::vector<Tensor> grads = dense_gradients(group.parameters);
    for (size_t i = 0; part_ && i < grads.size(); ++i) {
      if (!part_->contains(group.parameters[i].impl())) grads[i] = Tensor();
    }
    std::vector<State*> states(grads.size());
    const auto key = [&](size_t i) -> int64_t { return key_of(*(states[i] = &state_of(group.parameters[i]))); };
    for (const detail::Batch& members : detail::batches(grads, key)) {
      StepBatch<State> batch{members.key, members.dense(group.parameters), members.of(grads), {}};
      batch.states.reserve(members.members.size());
      for (const size_t i : members.members)
        batch.states.push_back(states[i]);
      run(group.options, std::as_const(batch));
      members.write_back(group.parameters, batch.parameters);
      for (const size_t i : members.members) {
        ++states[i]->step;
        group.parameters[i].bump_version();
      }
    }
  }
}

template <class Options, class State>
void GroupedOptimizer<Options, State>::step_part(std::span<const Tensor> parameters, SourceLocation where) {
  if (parameters.empty()) return;
  this->check_scale(parameters, where);
  const NoGradGuard no_grad(where);
  part_.emplace();
  for (const Tensor& parameter : parameters)
    part_->insert(parameter.impl());
  try {
    this->do_step();
  } catch (...) {
    part_.reset();
    throw;
  }
  part_.reset();
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
    for (const Tensor& parameter : groups_[g].parameters) {
      const std::string prefix = std::to_string(index++) + ".";
      const auto found = states_.find(parameter.impl());
      if (found == states_.end()) continue;
      State state = found->second;
      result.numbers.emplace_back(prefix + "step", static_cast<double>(state.step));
      if constexpr (detail::HasNumbers<State>) {
        state.for_each_number([&](const std::string& name, auto& value) {
          result.numbers.emplace_back(prefix + name, static_cast<double>(value));
        });
      }
      state.for_each([&](const std::string& name, Tensor& tensor, bool) {
        if (tensor.defined()) result.tensors.emplace_back(prefix + name, tensor);
      });
    }
  }
  return result;
}

template <class Options, class State>
void GroupedOptimizer<Options, State>::load_state_dict(const OptimizerState& state, SourceLocation where) {
  detail::check_kind(state.optimizer, name());
  detail::StateReader reader(state);
  std::vector<Group> groups = groups_;
  std::unordered_map<const TensorImpl*, State> states;
  size_t index = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    detail::check_group_size(g, reader.required_number(detail::group_key(g, "parameters")),
                             groups[g].parameters.size());
    groups[g].options.for_each([&](const std::string& name, auto& value) {
      value = static_cast<std::remove_reference_t<decltype(value)>>(reader.required_number(detail::group_key(g, name)));
    });
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
      own.for_each([&](const std::string& name, Tensor& tensor, bool required) {
        tensor = reader.tensor_like(prefix + name, parameter, required);
      });
    }
  }
  reader.finish();
  groups_ = std::move(groups);
  states_ = std::move(states);
  note_state_loaded(where);
}

template <class Options, class State>
std::vector<std::pair<size_t, Tensor>> GroupedOptimizer<Options, State>::state_tensors() const {
  std::vector<std::pair<size_t, Tensor>> result;
  size_t index = 0;
  for (const Group& group : groups_) {
    for (const Tensor& parameter : group.parameters) {
      const auto found = states_.find(parameter.impl());
      State state = found == states_.end() ? State() : found->second;
      state.for_each([&](const std::string&, Tensor& tensor, bool) {
        if (tensor.defined()) result.emplace_back(index, tensor);
      });
      ++index;
    }
  }
  return result;
}

}  // namespace brigade::optim
