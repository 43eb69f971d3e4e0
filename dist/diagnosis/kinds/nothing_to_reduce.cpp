// nothing_to_reduce: a wrapped module has no parameter that requires grad.
//
// Severity: note
// When: once
// Causes: `unknown`
#include <brigade/dist/diagnosis/kinds.h>

namespace brigade::dist {

Verdict nothing_to_reduce(const Moment& moment) {
  Verdict verdict = verdict_at(moment, "nothing_to_reduce", Severity::Note, CauseKind::Unknown);
  verdict.ranks = moment.every_rank();
  verdict.cause.text =
      "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient";
  verdict.advice = "use the module without a wrapper, or unfreeze its parameters before wrapping";
  set_message(verdict, "Nothing to reduce: the wrapper made at " + to_string(moment.where) + " passes calls on");
  return verdict;
}

}  // namespace brigade::dist
