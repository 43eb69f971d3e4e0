// RAII: captures the warnings of this thread (for tests and diagnosis).
#pragma once

#include <brigade/core/warning.h>

#include <vector>

namespace brigade {

// RAII: keeps every warning of this thread, each message once, whether or not it was reported
// before in this process; none of them is reported. Nests.
class WarningCollector {
 public:
  WarningCollector() noexcept;
  ~WarningCollector();
  WarningCollector(const WarningCollector&) = delete;
  WarningCollector& operator=(const WarningCollector&) = delete;
  const std::vector<Warning>& warnings() const noexcept { return warnings_; }

  // Whether this thread has a collector, which then keeps the warning.
  static bool take(const Warning& warning);

 private:
  std::vector<Warning> warnings_;
  WarningCollector* outer_;
};

}  // namespace brigade
