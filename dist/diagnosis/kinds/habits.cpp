// The kinds of verdicts on how a program uses its optimizers, one after the other.
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <utility>

namespace brigade::dist {

// averaged_twice: gradients that the wrapper averaged were then all-reduced by hand.
//
// Severity: warning
// When: before `step()`
// Causes: `reduced_twice`
Verdict averaged_twice(const SecondReduction& found, std::vector<ParameterVerdict> parameters) {
  Verdict verdict =
      new_verdict("averaged_twice", Severity::Warning, CauseKind::ReducedTwice, found.at ? found.at : found.step_at);
  verdict.cause.module = module_of(parameters.front().name);
  const bool is_sum = found.op == ReduceOp::Sum;
  verdict.cause.text =
      fmt::format("the wrapper averaged the gradients in backward, and the program's all_reduce({}){} followed{}",
                  name(found.op), found.at ? " at " + to_string(found.at) : "",
                  !is_sum                   ? ", which changes nothing"
                  : found.scaled_by.empty() ? fmt::format(": they are {} times too large", found.ranks)
                                            : ", and " + found.scaled_by);
  verdict.advice = is_sum ? "leave that all_reduce out" : "leave that all_reduce out, or run backward under no_sync";
  set_message(verdict, fmt::format("Reduced twice: {}, before the step at {}", names_in_words(parameters, 2),
                                   to_string(found.step_at)));
  verdict.parameters = std::move(parameters);
  return verdict;
}

// gradients_accumulate: a gradient still contains backwards that an earlier step already used.
//
// Severity: warning
// When: before `step()`
// Causes: `not_cleared`
Verdict gradients_accumulate(uint32_t backwards, SourceLocation used_at, SourceLocation step_at,
                             ParameterVerdict parameter) {
  Verdict verdict = new_verdict("gradients_accumulate", Severity::Warning, CauseKind::NotCleared, step_at);
  verdict.what = "Gradient not cleared";
  verdict.parameters.push_back(std::move(parameter));
  verdict.cause.text =
      fmt::format("it holds {} backwards, and the step at {} has used part of it: no zero_grad() came between",
                  backwards, to_string(used_at));
  verdict.advice = "call optimizer.zero_grad() after each step";
  return verdict;
}

// idle_step: an optimizer steps without new gradients from a backward.
//
// Severity: warning
// When: before `step()`
// Causes: `no_backward`: there is no gradient, an earlier step already used the gradients, or those of the latest
//   backward were cleared before the step
Verdict idle_step(const IdleStep& found) {
  Verdict verdict = new_verdict("idle_step", Severity::Warning, CauseKind::NoBackward, found.step_at);
  const char* what = "moves nothing";
  if (found.is_cleared) {
    what = "uses nothing of the latest backward";
    const bool is_known = found.cleared_at.line() != 0;
    if (is_known) verdict.cause.place = found.cleared_at;
    verdict.cause.text =
        "its gradients were cleared " + (is_known ? "at " + to_string(found.cleared_at) : "before the step");
    verdict.advice = "call zero_grad() before backward() or after step(), not between them";
  } else if (found.used_at.line() == 0) {
    verdict.cause.text = fmt::format("none of its parameters ({}) has a gradient", found.parameters);
    verdict.advice =
        "run backward() of a loss that reaches them before step(), and zero_grad() before that or after step()";
  } else {
    what = "uses the same gradients again";
    verdict.cause.text = "the step at " + to_string(found.used_at) + " has used them, and no backward came since";
    verdict.advice = "step once for each backward; let each parameter belong to one optimizer";
  }
  set_message(verdict, fmt::format("{}.step() at {} {}", found.optimizer, to_string(found.step_at), what));
  return verdict;
}

// needless_retain_graph: a backward kept its graph, but no other backward went through it.
//
// Severity: warning
// When: before `step()`
// Causes: `wasteful`
Verdict needless_retain_graph(SourceLocation backward, size_t bytes, size_t nodes, SourceLocation step_at) {
  Verdict verdict = new_verdict("needless_retain_graph", Severity::Warning, CauseKind::Wasteful, backward);
  verdict.cause.text =
      fmt::format("no other backward came through it before it was freed, as the step at {} found", to_string(step_at));
  verdict.advice = "leave retain_graph out";
  set_message(verdict, fmt::format("Graph kept for nothing: {} of results in {} operations, by retain_graph in the "
                                   "backward at {}",
                                   bytes_in_words(static_cast<int64_t>(bytes)), nodes, to_string(backward)));
  return verdict;
}

// stale_optimizer: an optimizer holds a parameter that the wrapped module no longer has, or whose module was destroyed.
//
// Severity: warning
// When: before `step()`
// Causes: `replaced`

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
               "make the wrapper and the optimizer again after the module has changed");
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
               "replace layers before the optimizer is made, or make it again");
}

// unheld_parameters: parameters are averaged in each backward, but no optimizer holds them.
//
// Severity: warning
// When: before `step()`
// Causes: `not_held`: after eight backwards
Verdict unheld_parameters(std::vector<ParameterVerdict> parameters, SourceLocation step_at) {
  Verdict verdict = new_verdict("unheld_parameters", Severity::Warning, CauseKind::NotHeld, step_at);
  verdict.cause.text = parameters.size() == 1 ? "no optimizer holds it" : "no optimizer holds them";
  verdict.advice = "give them to an optimizer, or freeze them before wrapping (requires_grad_(false))";
  set_message(verdict, fmt::format("Averaged in every backward, but never moved: {}, at the step at {}",
                                   names_in_words(parameters, 3), to_string(step_at)));
  verdict.parameters = std::move(parameters);
  return verdict;
}

// unreached_module: a wrapper's forward runs, but no backward reaches any of the parameters that its optimizer updates.
//
// Severity: warning
// When: before `step()`
// Causes: `detached`, `no_grad`, `not_differentiable`, `read_as_number`, `output_dropped`, `loss_not_connected`,
//   `collective`, `other_thread`: in several steps in a row

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
