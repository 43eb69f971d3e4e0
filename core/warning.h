// Where warnings of every layer go: to standard error, unless a handler is set.
#pragma once

#include <functional>
#include <string>

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

// Whether warnings without a handler are printed; true at first. A process that is not rank 0 of
// its group says no,
// so that a job of many processes prints each once.
void print_warnings(bool on);

}  // namespace brigade
