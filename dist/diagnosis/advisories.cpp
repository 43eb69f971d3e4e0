// Keeps advisories and reports each one once.
#include <brigade/dist/diagnosis/advisories.h>

#include <string>
#include <utility>

namespace brigade::dist {
namespace {

thread_local AdvisoryCollector* collector = nullptr;

}  // namespace

AdvisoryCollector::AdvisoryCollector() noexcept : outer_(std::exchange(collector, this)) {}
AdvisoryCollector::~AdvisoryCollector() { collector = outer_; }

Advisories::~Advisories() {
  for (const Warning& warning : undelivered_)
    tell_own(warning);
}

void Advisories::tell_own(const Warning& warning) const {
  tell({"rank " + std::to_string(rank_) + ": " + warning.message, warning.advice});
}

void Advisories::keep(const std::string& key, Verdict verdict, bool everywhere) {
  if (!keys_.insert(key).second) return;
  const Warning warning{verdict.message, advice_in_words(verdict)};
  if (collector) {
    collector->verdicts_.push_back(verdict);
  } else if (verdict.severity == Severity::Note) {
    // Notes are only kept, not printed.
  } else if (everywhere) {
    if (rank_ == 0) tell(warning);
  } else if (alone_) {
    tell_own(warning);
  } else {
    undelivered_.push_back(warning);
  }
  verdicts_.push_back(std::move(verdict));
}

}  // namespace brigade::dist
