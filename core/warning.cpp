// The one place where warnings are told, and which have been.
#include <brigade/core/warning.h>

#include <iostream>
#include <mutex>
#include <set>
#include <utility>

namespace brigade {

namespace {

struct Warnings {
  std::mutex mutex;
  std::set<std::string> told;
  std::function<void(const Warning&)> handler;
  bool print = true;
};
Warnings& warnings() {
  static Warnings all;
  return all;
}

}  // namespace

void warn(const Warning& warning) {
  {
    const std::lock_guard lock(warnings().mutex);
    if (!warnings().told.insert(warning.message).second) return;
  }
  tell(warning);
}

void tell(const Warning& warning) {
  Warnings& all = warnings();
  std::function<void(const Warning&)> handler;
  bool print = false;
  {
    const std::lock_guard lock(all.mutex);
    handler = all.handler;
    print = all.print;
  }
  if (handler) {
    handler(warning);
  } else if (print) {
    std::cerr << "brigade: warning: " + warning.message + "\n  fix: " + warning.advice + "\n";
  }
}

std::function<void(const Warning&)> set_warning_handler(std::function<void(const Warning&)> handler) {
  const std::lock_guard lock(warnings().mutex);
  return std::exchange(warnings().handler, std::move(handler));
}

void print_warnings(bool on) {
  const std::lock_guard lock(warnings().mutex);
  warnings().print = on;
}

}  // namespace brigade
