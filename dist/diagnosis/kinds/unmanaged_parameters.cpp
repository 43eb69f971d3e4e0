// unmanaged_parameters: an optimizer updates a parameter whose gradient no reducer averages.
//
// Severity: error
// When: before `step()`
// Causes: `thawed`, `replaced`, `added`, `outside_wrapper`
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {
namespace {

void outside_wrapper(const UnmanagedParameter& found, Verdict& verdict) {
  const bool is_registered = found.at.line() != 0;
  verdict.cause.place = is_registered ? found.at : found.last_use;
  // The text does not name the parameter, so that all parameters of a layer or model have the same cause.
  verdict.cause.text = fmt::format("{} moves it, and it belongs to no wrapped module", found.optimizer);
  if (is_registered) verdict.cause.text += fmt::format(" (registered at {})", to_string(found.at));
  verdict.advice = "register it in the wrapped module, or wrap its module too";
}

}  // namespace

Verdict unmanaged_parameters(const UnmanagedParameter& found) {
  Verdict verdict = new_verdict("unmanaged_parameters", Severity::Error, found.kind);
  verdict.what = "Not averaged";
  const std::string at = to_string(found.at);
  if (found.kind == CauseKind::OutsideWrapper) {
    outside_wrapper(found, verdict);
  } else if (found.kind == CauseKind::Replaced) {
    verdict.cause.text =
        fmt::format("the wrapper holds the old object, {} moves the new one, registered at {}", found.optimizer, at);
    verdict.advice = "wrap again after replacing a module or a parameter";
  } else if (found.kind == CauseKind::Thawed) {
    verdict.cause.text = fmt::format("trainable since {}, after wrapping", at);
    verdict.advice = "unfreeze it before wrapping, or wrap again afterwards";
  } else {
    verdict.cause.text = fmt::format("it was added after wrapping, at {}", at);
    verdict.advice = "build the whole module before wrapping, or wrap again";
  }
  if (found.kind != CauseKind::OutsideWrapper) verdict.cause.place = found.at;
  verdict.cause.module = module_of(found.name);
  verdict.parameters.push_back({found.name, found.bytes, {}, {}});
  return verdict;
}

}  // namespace brigade::dist
