// unheld_parameters: parameters are averaged in each backward, but no optimizer holds them.
//
// Severity: warning
// When: before `step()`
// Causes: `not_held`: after eight backwards
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <utility>

namespace brigade::dist {

Verdict unheld_parameters(std::vector<ParameterVerdict> parameters, SourceLocation step_at) {
  Verdict verdict = new_verdict("unheld_parameters", Severity::Warning, CauseKind::NotHeld, step_at);
  verdict.cause.text = parameters.size() == 1 ? "no optimizer holds it" : "no optimizer holds them";
  verdict.advice = "give them to an optimizer, or freeze them before wrapping (requires_grad_(false))";
  set_message(verdict, fmt::format("Averaged in every backward, but never moved: {}, at the step at {}",
                                   names_in_words(parameters, 3), to_string(step_at)));
  verdict.parameters = std::move(parameters);
  return verdict;
}

}  // namespace brigade::dist
