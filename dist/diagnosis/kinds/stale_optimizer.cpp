// stale_optimizer: an optimizer holds a parameter that the wrapped module no longer has, or whose module was destroyed.
//
// Severity: warning
// When: before `step()`
// Causes: `replaced`
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <utility>

namespace brigade::dist {

Verdict stale_optimizer(const std::string& optimizer, bool renewed, SourceLocation step_at,
                        ParameterVerdict parameter) {
  Verdict verdict;
  verdict.kind = "stale_optimizer";
  verdict.severity = Severity::Warning;
  verdict.cause.kind = CauseKind::Replaced;
  verdict.cause.place = step_at;
  verdict.cause.module = module_of(parameter.name);
  verdict.cause.text =
      renewed ? fmt::format("{} at {} holds an earlier `{}`: the module has another one now, which it does not move",
                            optimizer, to_string(step_at), parameter.name)
              : fmt::format("{} at {} holds `{}`, which is no part of the wrapped module any more", optimizer,
                            to_string(step_at), parameter.name);
  verdict.message = verdict.cause.text;
  verdict.advice = "change the module before it is wrapped and before its optimizer is made, or make both again";
  verdict.parameters.push_back(std::move(parameter));
  return verdict;
}

Verdict optimizer_of_gone_module(const GoneModule& found, std::vector<ParameterVerdict> parameters) {
  Verdict verdict;
  verdict.kind = "stale_optimizer";
  verdict.severity = Severity::Warning;
  verdict.cause.kind = CauseKind::Replaced;
  verdict.cause.place = found.step_at;
  verdict.cause.module = module_of(parameters.front().name);
  verdict.cause.text = fmt::format(
      "{} at {} holds `{}` of a module that is gone (registered at {}), and no optimizer holds {}, which {} averaged",
      found.optimizer, to_string(found.step_at), found.name, to_string(found.registered_at),
      names_in_words(parameters, 4), parameters.size() == 1 ? "is" : "are");
  verdict.message = verdict.cause.text;
  verdict.advice = "replace layers before the optimizer is made, or make it again";
  verdict.parameters = std::move(parameters);
  return verdict;
}

}  // namespace brigade::dist
