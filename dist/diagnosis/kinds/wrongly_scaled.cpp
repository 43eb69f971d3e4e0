// wrongly_scaled: a rank found gradients that the loss scaler should have unscaled, or scaled by another factor.
//
// Severity: error
// When: before `step()`
// Causes: `wrong_scale`: reported on the ranks whose own gradients are right; the others throw the scaler's error
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict wrongly_scaled(const std::string& fault, size_t others, SourceLocation step_at, ParameterVerdict parameter) {
  Verdict verdict;
  verdict.kind = "wrongly_scaled";
  verdict.parameters.push_back(std::move(parameter));
  verdict.cause.kind = CauseKind::WrongScale;
  verdict.cause.place = step_at;
  verdict.cause.text = fmt::format("its gradient{} {}",
                                   others == 0 ? "" : fmt::format(" (and that of {} other parameters)", others), fault);
  verdict.advice = "scale the loss, unscale and step by the same calls on every rank";
  return verdict;
}

}  // namespace brigade::dist
