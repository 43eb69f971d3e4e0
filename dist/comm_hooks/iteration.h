// The count of reduced backwards that a hook keeps in its state.
#pragma once

#include <brigade/core/factory.h>
#include <brigade/core/tensor.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

inline constexpr const char* kIterationKey = "iteration";

// The state entry that holds the count: one int64.
inline std::pair<std::string, Tensor> iteration_entry(uint64_t iteration) {
  return {kIterationKey, tensor<int64_t>({static_cast<int64_t>(iteration)})};
}

// Reads the count from a saved state. Throws ValueError, naming the hook, if the entry is missing or is not a count.
inline uint64_t iteration_in(const std::vector<std::pair<std::string, Tensor>>& state, const std::string& hook) {
  const auto found =
      std::find_if(state.begin(), state.end(), [](const auto& entry) { return entry.first == kIterationKey; });
  if (found == state.end()) {
    throw ValueError("{}: the state has no entry '{}'; expected what state_dict() of the same kind of hook gave", hook,
                     kIterationKey);
  }
  const Tensor& count = found->second;
  const bool fits = count.defined() && count.dtype() == kInt64 && count.numel() == 1;
  const int64_t value = fits ? brigade::detail::elements_of<int64_t>(count).front() : -1;
  if (value < 0) {
    throw ValueError("{}: '{}' of the state is {}, expected one int64 that is not negative", hook, kIterationKey,
                     fits              ? std::to_string(value)
                     : count.defined() ? describe(count)
                                       : "undefined");
  }
  return static_cast<uint64_t>(value);
}

}  // namespace brigade::dist
