// The fields that all verdicts on a backward share.
#include <brigade/dist/diagnosis/verdict_at.h>

namespace brigade::dist {

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
