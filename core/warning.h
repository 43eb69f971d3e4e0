// Warnings of every layer: printed to standard error, unless a handler is set.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace brigade {

struct Warning {
  std::string message;  // what was seen, and where
  std::string advice;   // what to do; following it ends the warning
};

// Reports the warning, unless warn() has reported the same message in this process already.
void warn(const Warning& warning);
// Reports it each time: for callers that keep track of what they have reported.
void tell(const Warning& warning);

// Sets the function that receives warnings, on the thread that warns (several at once if ranks are
// threads); an empty function restores standard error. Returns the previous handler.
std::function<void(const Warning&)> set_warning_handler(std::function<void(const Warning&)> handler);

// For a process that is not rank 0 of its job: warnings without a handler are held until they are taken, so that a job
// of many processes prints each once. Those that were not taken are printed when the process ends, after "rank 2: ".
void hold_warnings(int rank);
std::vector<Warning> take_held_warnings();
bool has_held_warnings() noexcept;
// Whether this process has reported the message, to a handler or to standard error.
bool has_told(const std::string& message);

// --- RAII: captures the warnings of this thread (for tests and diagnosis).

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
