// The count of reduced backwards that a hook keeps in its state.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

inline constexpr const char* kIterationKey = "iteration";

// The entry of a state that holds the count.
std::pair<std::string, Tensor> iteration_entry(uint64_t iteration);
// The count that such an entry of a saved state holds. Throws ValueError, in the name of the hook,
// for an entry that is missing or is no count.
uint64_t iteration_in(const std::vector<std::pair<std::string, Tensor>>& state, const std::string& hook);

}  // namespace brigade::dist
