// unreached_module: a wrapper's forward runs, but no backward reaches any of the parameters that its optimizer updates.
//
// Severity: warning
// When: before `step()`
// Causes: `detached`, `no_grad`, `not_differentiable`, `read_as_number`, `output_dropped`, `loss_not_connected`,
//   `collective`, `other_thread`: in several steps in a row
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <utility>

namespace brigade::dist {
namespace {

std::string remedy(CauseKind kind) {
  switch (kind) {
    case CauseKind::Detached: return "remove the detach()";
    case CauseKind::NoGrad: return "end the no_grad scope before that call";
    case CauseKind::NotDifferentiable: return "replace that operation by a differentiable one";
    case CauseKind::ReadAsNumber: return "use the tensor itself in the loss";
    case CauseKind::OutputDropped: return "add that output to the loss";
    default: return "compute the loss from the module's output, by operations on tensors";
  }
}

}  // namespace

Verdict unreached_module(const UnreachedModule& found, std::vector<ParameterVerdict> parameters, Cause cause) {
  Verdict verdict = new_verdict("unreached_module", Severity::Warning, cause.kind);
  verdict.advice = remedy(cause.kind) + ", or run its forward under NoGradGuard if it is not to be trained here";
  verdict.cause = std::move(cause);
  set_message(verdict, fmt::format("No gradient of {} in {} steps of {}, the latest at {}, although its forward ran",
                                   found.title, found.steps, found.optimizer, to_string(found.step_at)));
  verdict.parameters = std::move(parameters);
  return verdict;
}

}  // namespace brigade::dist
