// Keeping advisories, and telling each once.
#include <brigade/dist/diagnosis/advisories.h>

#include <brigade/core/warning.h>

#include <utility>

namespace brigade::dist {

namespace {

thread_local AdvisoryCollector* collector = nullptr;

}  // namespace

AdvisoryCollector::AdvisoryCollector() noexcept : outer_(std::exchange(collector, this)) {}
AdvisoryCollector::~AdvisoryCollector() { collector = outer_; }

bool Advisories::add(const std::string& key, Verdict verdict, bool print) {
  if (!keys_.insert(key).second) return false;
  if (collector) {
    collector->verdicts_.push_back(verdict);
  } else if (print && verdict.severity != Severity::Note) {
    tell({verdict.message, verdict.advice});
  }
  verdicts_.push_back(std::move(verdict));
  return true;
}

}  // namespace brigade::dist
