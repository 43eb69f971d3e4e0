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
  Verdict verdict = new_verdict("stale_optimizer", Severity::Warning, CauseKind::Replaced, step_at);
  verdict.cause.module = module_of(parameter.name);
  verdict.cause.text = renewed ? "the module has another one now, which it does not move"
                               : "that is no part of the wrapped module any more";
  verdict.advice = "change the module before it is wrapped and before its optimizer is made, or make both again";
  set_message(verdict, fmt::format("{} at {} holds an earlier `{}`", optimizer, to_string(step_at), parameter.name));
  verdict.parameters.push_back(std::move(parameter));
  return verdict;
}

Verdict optimizer_of_gone_module(const GoneModule& found, std::vector<ParameterVerdict> parameters) {
  Verdict verdict = new_verdict("stale_optimizer", Severity::Warning, CauseKind::Replaced, found.step_at);
  verdict.cause.module = module_of(parameters.front().name);
  verdict.cause.text = fmt::format("no optimizer holds {}, which {} averaged", names_in_words(parameters, 4),
                                   parameters.size() == 1 ? "is" : "are");
  const bool are_copies = found.name.empty();
  verdict.advice = are_copies ? "make it of the module's own parameters, not of copies (clone())"
                              : "replace layers before the optimizer is made, or make it again";
  set_message(verdict, are_copies ? fmt::format("{} at {} holds tensors of no module, and none has a gradient",
                                                found.optimizer, to_string(found.step_at))
                                  : fmt::format("{} at {} holds `{}` of a module that is gone (registered at {})",
                                                found.optimizer, to_string(found.step_at), found.name,
                                                to_string(found.registered_at)));
  verdict.parameters = std::move(parameters);
  return verdict;
}

}  // namespace brigade::dist
