// unheld_parameters: parameters are averaged in each backward, but no optimizer holds them.
//
// Severity: warning
// When: before `step()`
// Causes: `not_held`: after 32 backwards
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <utility>

namespace brigade::dist {

Verdict unheld_parameters(std::vector<ParameterVerdict> parameters, SourceLocation step_at) {
  Verdict verdict;
  verdict.kind = "unheld_parameters";
  verdict.severity = Severity::Warning;
  verdict.cause.kind = CauseKind::NotHeld;
  verdict.cause.place = step_at;
  verdict.cause.text = fmt::format("{}: averaged in every backward, and no optimizer holds {}",
                                   names_in_words(parameters, 3), parameters.size() == 1 ? "it" : "them");
  verdict.message = verdict.cause.text;
  verdict.advice = "give them to an optimizer, or freeze them before wrapping (requires_grad_(false))";
  verdict.parameters = std::move(parameters);
  return verdict;
}

}  // namespace brigade::dist
