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
  Verdict verdict = new_verdict("idle_step", Severity::Warning, CauseKind::NoBackward, found.step_at);
  const char* what = "moves nothing";
  if (found.is_cleared) {
    what = "uses nothing of the latest backward";
    const bool is_known = found.cleared_at.line() != 0;
    if (is_known) verdict.cause.place = found.cleared_at;
    verdict.cause.text =
        "its gradients were cleared " + (is_known ? "at " + to_string(found.cleared_at) : "before the step");
    verdict.advice = "call zero_grad() before backward() or after step(), not between them";
  } else if (found.used_at.line() == 0) {
    verdict.cause.text = fmt::format("none of its parameters ({}) has a gradient", found.parameters);
    verdict.advice =
        "run backward() of a loss that reaches them before step(), and zero_grad() before that or after step()";
  } else {
    what = "uses the same gradients again";
    verdict.cause.text = "the step at " + to_string(found.used_at) + " has used them, and no backward came since";
    verdict.advice = "step once for each backward; let each parameter belong to one optimizer";
  }
  set_message(verdict, fmt::format("{}.step() at {} {}", found.optimizer, to_string(found.step_at), what));
  return verdict;
}

}  // namespace brigade::dist
