// Saving and loading of GroupedOptimizer.
#pragma once

#include <brigade/kernels/elementwise.h>
#include <brigade/optim/optimizer.h>

namespace brigade::optim {

template <class Options, class State>
OptimizerState GroupedOptimizer<Options, State>::state_dict() const {
  OptimizerState result;
  size_t index = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    Options options = groups_[g].options;
    options.for_each([&](const std::string& name, auto& value) {
      result.numbers.emplace_back("group" + std::to_string(g) + "." + name, static_cast<double>(value));
    });
    for (const Tensor& parameter : groups_[g].parameters) {
      const std::string prefix = std::to_string(index++) + ".";
      const auto found = states_.find(parameter.impl());
      if (found == states_.end()) continue;
      State state = found->second;
      result.numbers.emplace_back(prefix + "step", static_cast<double>(state.step));
      state.for_each([&](const std::string& name, Tensor& tensor) {
        if (tensor.defined()) result.tensors.emplace_back(prefix + name, tensor);
      });
    }
  }
  return result;
}

template <class Options, class State>
void GroupedOptimizer<Options, State>::load_state_dict(const OptimizerState& state) {
  std::unordered_map<std::string, double> numbers(state.numbers.begin(), state.numbers.end());
  std::unordered_map<std::string, Tensor> tensors(state.tensors.begin(), state.tensors.end());
  std::vector<Group> groups = groups_;
  std::unordered_map<const TensorImpl*, State> states;
  size_t used = 0;
  size_t index = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    groups[g].options.for_each([&](const std::string& name, auto& value) {
      const std::string key = "group" + std::to_string(g) + "." + name;
      const auto found = numbers.find(key);
      if (found == numbers.end())
        throw ValueError("optimizer state: '" + key +
                         "' is missing; it was saved from an optimizer with other groups or of another kind");
      value = static_cast<std::remove_reference_t<decltype(value)>>(found->second);
    });
    for (const Tensor& parameter : groups[g].parameters) {
      const std::string prefix = std::to_string(index++) + ".";
      const auto step = numbers.find(prefix + "step");
      if (step == numbers.end()) continue;
      State& own = states[parameter.impl()];
      own.step = static_cast<int64_t>(step->second);
      own.for_each([&](const std::string& name, Tensor& tensor) {
        const auto found = tensors.find(prefix + name);
        if (found == tensors.end()) return;
        if (found->second.sizes() != parameter.sizes() || found->second.dtype() != parameter.dtype()) {
          throw ValueError("optimizer state: '" + prefix + name + "' is " + describe(found->second) + ", expected " +
                           describe(parameter));
        }
        tensor = kernels::clone(found->second);
        ++used;
      });
    }
  }
  if (used != state.tensors.size()) {
    throw ValueError("optimizer state: it holds " + std::to_string(state.tensors.size()) + " tensors, of which only " +
                     std::to_string(used) + " belong to this optimizer's parameters");
  }
  groups_ = std::move(groups);
  states_ = std::move(states);
}

}  // namespace brigade::optim
