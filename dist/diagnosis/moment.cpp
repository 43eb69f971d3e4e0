// The fields that all verdicts on a backward share.
#include <brigade/dist/diagnosis/moment.h>

#include <numeric>

namespace brigade::dist {

std::vector<int> Moment::every_rank() const {
  std::vector<int> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Verdict verdict_at(const Moment& moment, const char* kind, Severity severity, CauseKind cause) {
  Verdict verdict;
  verdict.kind = kind;
  verdict.severity = severity;
  verdict.iteration = moment.iteration;
  verdict.cause.kind = cause;
  verdict.cause.place = moment.where;
  return verdict;
}

}  // namespace brigade::dist
