// idle_step: an optimizer steps without new gradients from a backward.
//
// Severity: warning
// When: before `step()`
// Causes: `no_backward`: there is no gradient, an earlier step already used the gradients, or those of the latest
//   backward were cleared before the step
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict idle_step(const IdleStep& found) {
  Verdict verdict;
  verdict.kind = "idle_step";
  verdict.severity = Severity::Warning;
  verdict.cause.kind = CauseKind::NoBackward;
  verdict.cause.place = found.step_at;
  if (found.is_cleared) {
    const bool is_known = found.cleared_at.line() != 0;
    if (is_known) verdict.cause.place = found.cleared_at;
    verdict.cause.text = fmt::format(
        "{}.step() at {} uses nothing of the latest backward: its gradients were cleared{}", found.optimizer,
        to_string(found.step_at), is_known ? " at " + to_string(found.cleared_at) : " before the step");
    verdict.advice = "call zero_grad() before backward() or after step(), not between them";
  } else if (found.used_at.line() == 0) {
    verdict.cause.text = fmt::format(
        "{}.step() at {} moves nothing: none of its parameters has a gradient, and no backward came since its last step",
        found.optimizer, to_string(found.step_at));
    verdict.advice = "run backward() before step(), and zero_grad() before that or after step()";
  } else {
    verdict.cause.text = fmt::format(
        "{}.step() at {} uses the same gradients again: the step at {} has used them, and no backward came since",
        found.optimizer, to_string(found.step_at), to_string(found.used_at));
    verdict.advice = "step once for each backward; let each parameter belong to one optimizer";
  }
  verdict.message = verdict.cause.text;
  return verdict;
}

}  // namespace brigade::dist
