// The count of reduced backwards that a hook keeps in its state.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

inline constexpr const char* kIterationKey = "iteration";

// The state entry that holds the count.
std::pair<std::string, Tensor> iteration_entry(uint64_t iteration);
// Reads the count from a saved state. Throws ValueError, naming the hook, if the entry is missing or is not a count.
uint64_t iteration_in(const std::vector<std::pair<std::string, Tensor>>& state, const std::string& hook);

}  // namespace brigade::dist
