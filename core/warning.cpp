// Prints warnings, and records which were reported and which are held for the other ranks.
#include <brigade/core/warning.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace brigade {

namespace {

void print(const Warning& warning, const std::string& rank) {
  std::cerr << "brigade: warning: " + rank + warning.message + "\n  fix: " + warning.advice + "\n";
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
