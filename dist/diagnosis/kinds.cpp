// What all kinds of verdicts begin with.
#include <brigade/dist/diagnosis/kinds.h>

namespace brigade::dist {

Verdict verdict_at(const Moment& moment, const char* kind, Severity severity, CauseKind cause) {
  Verdict verdict;
  verdict.kind = kind;
  verdict.severity = severity;
  verdict.iteration = moment.iteration;
  verdict.cause.kind = cause;
  set_place(verdict.cause, moment.where);
  return verdict;
}

}  // namespace brigade::dist
