// Checks of options, with PyTorch's messages.
#pragma once

#include <brigade/core/error.h>

#include <array>
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

}  // namespace brigade::optim::detail
