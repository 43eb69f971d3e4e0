#include <brigade/dist/diagnosis/advisories.h>

#include <iostream>
#include <mutex>

namespace brigade::dist {

namespace {

std::mutex handler_mutex;
std::function<void(const Verdict&)> warning_handler;

}  // namespace

void set_warning_handler(std::function<void(const Verdict&)> handler) {
  const std::lock_guard lock(handler_mutex);
  warning_handler = std::move(handler);
}

bool Advisories::add(const std::string& key, Verdict verdict, bool print) {
  if (!keys_.insert(key).second) return false;
  if (print && verdict.severity != Severity::Note) {
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
