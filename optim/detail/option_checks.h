// Checks of options, with PyTorch's words.
#pragma once

#include <brigade/core/error.h>

#include <array>
#include <cstdint>
#include <string>

namespace brigade::optim::detail {

// Throws ValueError "Invalid learning rate: -1".
inline void check_option(bool valid, const std::string& what, double value) {
  if (!valid) throw ValueError("Invalid {}: {}", what, value);
}
inline void check_at_least_zero(const std::string& what, double value) { check_option(value >= 0, what, value); }
inline void check_betas(const std::array<double, 2>& betas) {
  for (size_t i = 0; i < betas.size(); ++i) {
    if (!(betas[i] >= 0 && betas[i] < 1)) throw ValueError("Invalid beta parameter at index {}: {}", i, betas[i]);
  }
}
// Throws ValueError "Expected positive integer step_size, but got 0".
inline void check_positive(const std::string& what, int64_t value) {
  if (value < 1) throw ValueError("Expected positive integer {}, but got {}", what, value);
}

}  // namespace brigade::optim::detail
