// stale_optimizer: an optimizer holds a parameter that the wrapped module no longer has, or whose module was destroyed.
//
// Severity: warning
// When: before `step()`
// Causes: `replaced`
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <utility>

namespace brigade::dist {
namespace {

// "AdamW (made at a.cpp:5) holds ..., before its step at a.cpp:9".
Verdict holds(const StaleOptimizer& found, const std::string& what, std::vector<ParameterVerdict> parameters,
              const std::string& why, const char* advice) {
  Verdict verdict =
      new_verdict("stale_optimizer", Severity::Warning, CauseKind::Replaced, found.since ? found.since : found.step_at);
  verdict.cause.module = module_of(parameters.front().name);
  verdict.cause.text = why;
  verdict.advice = advice;
  set_message(verdict, fmt::format("{}{} holds {}, before its step at {}", found.optimizer,
                                   found.made_at ? fmt::format(" (made at {})", to_string(found.made_at)) : "", what,
                                   to_string(found.step_at)));
  verdict.parameters = std::move(parameters);
  return verdict;
}

std::string another_since(const StaleOptimizer& found) {
  return "the module has had another one" + (found.since ? " since " + to_string(found.since) : "");
}

}  // namespace

Verdict stale_optimizer(const StaleOptimizer& found, ParameterVerdict parameter) {
  return holds(found,
               found.is_tied ? fmt::format("an earlier `{}`", found.name)
                             : fmt::format("`{}`, which the module no longer has", found.name),
               {std::move(parameter)},
               found.is_renewed ? another_since(found) + ", which it does not move" : "no backward reaches it any more",
               "change the module before it is wrapped and before its optimizer is made, or make both again");
}

Verdict optimizer_of_gone_module(const StaleOptimizer& found, std::vector<ParameterVerdict> parameters) {
  const std::string unmoved = fmt::format("no optimizer holds {}, which {} averaged", names_in_words(parameters, 4),
                                          parameters.size() == 1 ? "is" : "are");
  if (found.name.empty())
    return holds(found, "tensors of no module, all without a gradient", std::move(parameters), unmoved,
                 "make it of the module's own parameters, not of copies (clone())");
  return holds(found,
               fmt::format("`{}`, which {}", found.name,
                           found.is_renewed ? "the module no longer has" : "no module has any more"),
               std::move(parameters), found.is_renewed ? another_since(found) + "; " + unmoved : unmoved,
               "replace layers before the optimizer is made, or make the optimizer again");
}

}  // namespace brigade::dist
