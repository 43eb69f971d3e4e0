// averaged_twice: a gradient that the wrapper averaged was then all-reduced by hand.
//
// Severity: warning
// When: before `step()`
// Causes: `reduced_twice`
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict averaged_twice(SourceLocation step_at, ParameterVerdict parameter) {
  Verdict verdict = new_verdict("averaged_twice", Severity::Warning, CauseKind::ReducedTwice, step_at);
  verdict.cause.module = module_of(parameter.name);
  verdict.cause.text = "the wrapper averaged the gradient in backward, and an all_reduce by hand followed";
  verdict.advice = "leave the all_reduce out, or run backward under no_sync";
  set_message(verdict, fmt::format("Averaged twice: {}, before the step at {}", parameter.name, to_string(step_at)));
  verdict.parameters.push_back(std::move(parameter));
  return verdict;
}

}  // namespace brigade::dist
