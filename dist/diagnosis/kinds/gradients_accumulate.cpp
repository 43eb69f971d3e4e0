// gradients_accumulate: a gradient still contains backwards that an earlier step already used.
//
// Severity: warning
// When: before `step()`
// Causes: `not_cleared`
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict gradients_accumulate(uint32_t backwards, SourceLocation used_at, SourceLocation step_at,
                             ParameterVerdict parameter) {
  Verdict verdict;
  verdict.kind = "gradients_accumulate";
  verdict.severity = Severity::Warning;
  verdict.parameters.push_back(std::move(parameter));
  verdict.cause.kind = CauseKind::NotCleared;
  verdict.cause.place = step_at;
  verdict.cause.text = fmt::format(
      "the gradient has gathered {} backwards, and the step at {} has used part of it already: no zero_grad() came "
      "between",
      backwards, to_string(used_at));
  verdict.advice = "call optimizer.zero_grad() after each step";
  return verdict;
}

}  // namespace brigade::dist
