// wrongly_scaled: a rank found gradients that the loss scaler should have unscaled, or scaled by another factor.
//
// Severity: error
// When: before `step()`
// Causes: `wrong_scale`: reported on the ranks whose own gradients are right; the others throw the scaler's error
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict wrongly_scaled(const autograd::ScaleFault& fault, SourceLocation step_at, ParameterVerdict parameter) {
  Verdict verdict = new_verdict("wrongly_scaled", Severity::Error, CauseKind::WrongScale, step_at);
  verdict.what = "Wrong scale";
  verdict.parameters.push_back(std::move(parameter));
  const std::string others = fault.others == 0 ? "" : fmt::format(" (and {} more)", fault.others);
  verdict.cause.text = fmt::format("the gradient{} {}", others, fault.text);
  verdict.advice = fault.advice;
  return verdict;
}

}  // namespace brigade::dist
