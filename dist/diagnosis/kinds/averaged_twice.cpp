// averaged_twice: a gradient that the wrapper averaged was then all-reduced by hand.
//
// Severity: warning
// When: before `step()`
// Causes: `reduced_twice`
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict averaged_twice(SourceLocation step_at, ParameterVerdict parameter) {
  Verdict verdict;
  verdict.kind = "averaged_twice";
  verdict.severity = Severity::Warning;
  verdict.cause.kind = CauseKind::ReducedTwice;
  verdict.cause.place = step_at;
  verdict.cause.module = module_of(parameter.name);
  verdict.cause.text = fmt::format(
      "the gradient of {} was averaged by the wrapper in backward, and all-reduced by hand before the step at {}: a mean "
      "of equal numbers changes nothing, and a sum makes it as many times too large as there are ranks",
      parameter.name, to_string(step_at));
  verdict.message = verdict.cause.text;
  verdict.advice = "leave the all_reduce out; to average by hand, run backward under no_sync";
  verdict.parameters.push_back(std::move(parameter));
  return verdict;
}

}  // namespace brigade::dist
