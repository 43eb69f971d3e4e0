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
  Verdict verdict = new_verdict("gradients_accumulate", Severity::Warning, CauseKind::NotCleared, step_at);
  verdict.what = "Gradient not cleared";
  verdict.parameters.push_back(std::move(parameter));
  verdict.cause.text =
      fmt::format("it holds {} backwards, and the step at {} has used part of it: no zero_grad() came between",
                  backwards, to_string(used_at));
  verdict.advice = "call optimizer.zero_grad() after each step";
  return verdict;
}

}  // namespace brigade::dist
