#include <brigade/dist/diagnosis/advisories.h>

#include <iostream>
#include <mutex>
#include <utility>

namespace brigade::dist {

namespace {

std::mutex handler_mutex;
std::function<void(const Verdict&)> warning_handler;

thread_local AdvisoryCollector* collector = nullptr;

}  // namespace

AdvisoryCollector::AdvisoryCollector() noexcept : outer_(std::exchange(collector, this)) {}
AdvisoryCollector::~AdvisoryCollector() { collector = outer_; }

void set_warning_handler(std::function<void(const Verdict&)> handler) {
  const std::lock_guard lock(handler_mutex);
  warning_handler = std::move(handler);
}

bool Advisories::add(const std::string& key, Verdict verdict, bool print) {
  if (!keys_.insert(key).second) return false;
  if (collector) {
    collector->verdicts_.push_back(verdict);
  } else if (print && verdict.severity != Severity::Note) {
    const std::lock_guard lock(handler_mutex);
    if (warning_handler) {
      warning_handler(verdict);
    } else {
      std::cerr << "brigade: warning: " << verdict.message << "\n  fix: " << verdict.advice << "\n";
    }
  }
  verdicts_.push_back(std::move(verdict));
  return true;
}

}  // namespace brigade::dist
