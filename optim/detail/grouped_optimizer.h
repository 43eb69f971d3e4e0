// Saving and loading of GroupedOptimizer.
#pragma once

#include <brigade/kernels/elementwise.h>
#include <brigade/optim/optimizer.h>

#include <type_traits>

namespace brigade::optim {

namespace detail {

// Reads a saved state by name and remembers what was read, so that what is left over can be named.
class StateReader {
 public:
  explicit StateReader(const OptimizerState& state);
  const double* number(const std::string& name);
  // Throws ValueError when it is missing.
  double required_number(const std::string& name);
  // A copy on the parameter's device, or an undefined tensor. Throws ValueError unless it has the parameter's shape and
  // dtype, and when `required` and missing.
  Tensor tensor_like(const std::string& name, const Tensor& parameter, bool required);
  // Throws ValueError that names what nobody asked for.
  void finish() const;

 private:
  struct Entry {
    const Tensor* tensor = nullptr;
    double number = 0;
    bool used = false;
  };
  std::unordered_map<std::string, Entry> entries_;
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

inline std::string group_key(size_t group, const std::string& name) {
  return "group" + std::to_string(group) + "." + name;
}

}  // namespace detail

template <class Options, class State>
std::string GroupedOptimizer<Options, State>::options_text() const {
  return detail::options_text(groups_);
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
      state.for_each([&](const std::string& name, Tensor& tensor, bool) {
        if (tensor.defined()) result.tensors.emplace_back(prefix + name, tensor);
      });
    }
  }
  return result;
}

template <class Options, class State>
void GroupedOptimizer<Options, State>::load_state_dict(const OptimizerState& state) {
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
      own.for_each([&](const std::string& name, Tensor& tensor, bool required) {
        tensor = reader.tensor_like(prefix + name, parameter, required);
      });
    }
  }
  reader.finish();
  groups_ = std::move(groups);
  states_ = std::move(states);
}

}  // namespace brigade::optim
