// Where warnings of every layer go: to standard error, unless a handler is set.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace brigade {

struct Warning {
  std::string message;  // what was seen, and where
  std::string advice;   // what to do; following it ends the warning
};

// Tells it, unless the same message was told before in this process.
void warn(const Warning& warning);
// Tells it each time: for those who know themselves what they have told.
void tell(const Warning& warning);

// Where warnings go, on the thread that warns (several at once where ranks are threads); an empty
// function restores standard error. Returns the handler before it.
std::function<void(const Warning&)> set_warning_handler(std::function<void(const Warning&)> handler);

// For a process that is not rank 0 of its job: warnings without a handler are held until somebody takes
// them, so that a job of many processes prints each once. What nobody has taken is printed when the
// process ends, after "rank 2: ".
void hold_warnings(int rank);
std::vector<Warning> take_held_warnings();
bool has_held_warnings() noexcept;
// Whether this process has told it, to a handler or to standard error.
bool has_told(const std::string& message);

}  // namespace brigade
