// RAII: captures the warnings of this thread (for tests and diagnosis).
#pragma once

#include <brigade/core/warning.h>

#include <vector>

namespace brigade {

// While it lives, keeps every warning of this thread, each message once, whether or not it was told
// before in this process; none of them is told. Nests.
class WarningCollector {
 public:
  WarningCollector() noexcept;
  ~WarningCollector();
  WarningCollector(const WarningCollector&) = delete;
  WarningCollector& operator=(const WarningCollector&) = delete;
  const std::vector<Warning>& warnings() const noexcept { return warnings_; }

  // Whether this thread has a collector, which then keeps it.
  static bool take(const Warning& warning);

 private:
  std::vector<Warning> warnings_;
  WarningCollector* outer_;
};

}  // namespace brigade
