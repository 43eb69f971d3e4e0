// Prints warnings, and records which were reported and which are held for the other ranks.
#include <brigade/core/warning.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <unistd.h>

namespace brigade {
namespace {

// A program that replaces it may not show escape sequences.
std::streambuf* const standard_error = std::cerr.rdbuf();

// The first line is bold on a terminal, unless NO_COLOR is set (no-color.org).
std::string with_bold_line(const std::string& text) {
  const char* const plain = std::getenv("NO_COLOR");
  if ((plain && *plain != '\0') || std::cerr.rdbuf() != standard_error || isatty(STDERR_FILENO) != 1) return text;
  const size_t end = std::min(text.find('\n'), text.size());
  return "\x1b[1m" + text.substr(0, end) + "\x1b[0m" + text.substr(end);
}

void print(const Warning& warning, const std::string& rank) {
  const std::string advice = warning.advice.empty() ? "" : "\ndo:  " + warning.advice;
  std::cerr << with_bold_line("brigade: warning: " + rank + warning.message) + advice + "\n";
}

struct Warnings {
  std::mutex mutex;
  std::set<std::string> warned;  // by warn()
  std::set<std::string> told;
  std::function<void(const Warning&)> handler;
  std::string rank;  // "rank 2: " where warnings are held
  std::vector<Warning> held;
  std::atomic<bool> holds_some = false;

  ~Warnings() {
    for (const Warning& warning : held)
      print(warning, rank);
  }
};
Warnings& warnings() {
  static Warnings all;
  return all;
}

thread_local WarningCollector* warning_collector = nullptr;

}  // namespace

WarningCollector::WarningCollector() noexcept : outer_(std::exchange(warning_collector, this)) {}
WarningCollector::~WarningCollector() { warning_collector = outer_; }

bool WarningCollector::take(const Warning& warning) {
  if (!warning_collector) return false;
  std::vector<Warning>& kept = warning_collector->warnings_;
  const auto same = [&](const Warning& each) { return each.message == warning.message; };
  if (std::none_of(kept.begin(), kept.end(), same)) kept.push_back(warning);
  return true;
}

void warn(const Warning& warning) {
  if (WarningCollector::take(warning)) return;
  {
    const std::lock_guard lock(warnings().mutex);
    if (!warnings().warned.insert(warning.message).second) return;
  }
  tell(warning);
}

void tell(const Warning& warning) {
  if (WarningCollector::take(warning)) return;
  Warnings& all = warnings();
  std::function<void(const Warning&)> handler;
  {
    const std::lock_guard lock(all.mutex);
    handler = all.handler;
    if (!handler && !all.rank.empty()) {
      all.held.push_back(warning);
      all.holds_some = true;
      return;
    }
    all.told.insert(warning.message);
  }
  if (handler) {
    handler(warning);
  } else {
    print(warning, "");
  }
}

std::function<void(const Warning&)> set_warning_handler(std::function<void(const Warning&)> handler) {
  const std::lock_guard lock(warnings().mutex);
  return std::exchange(warnings().handler, std::move(handler));
}

void hold_warnings(int rank) {
  const std::lock_guard lock(warnings().mutex);
  warnings().rank = "rank " + std::to_string(rank) + ": ";
}

std::vector<Warning> take_held_warnings() {
  const std::lock_guard lock(warnings().mutex);
  warnings().holds_some = false;
  return std::exchange(warnings().held, {});
}

bool has_held_warnings() noexcept { return warnings().holds_some; }

bool has_told(const std::string& message) {
  const std::lock_guard lock(warnings().mutex);
  return warnings().told.contains(message);
}

}  // namespace brigade
