// averaged_twice: gradients that the wrapper averaged were then all-reduced by hand.
//
// Severity: warning
// When: before `step()`
// Causes: `reduced_twice`
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict averaged_twice(const SecondReduction& found, std::vector<ParameterVerdict> parameters) {
  Verdict verdict =
      new_verdict("averaged_twice", Severity::Warning, CauseKind::ReducedTwice, found.at ? found.at : found.step_at);
  verdict.cause.module = module_of(parameters.front().name);
  const bool is_sum = found.op == ReduceOp::Sum;
  verdict.cause.text =
      fmt::format("the wrapper averaged the gradients in backward, and the program's all_reduce({}){} followed{}",
                  name(found.op), found.at ? " at " + to_string(found.at) : "",
                  !is_sum                   ? ", which changes nothing but costs a collective"
                  : found.scaled_by.empty() ? fmt::format(": they are {} times too large", found.ranks)
                                            : ", and " + found.scaled_by);
  verdict.advice = is_sum ? "leave that all_reduce out" : "leave that all_reduce out, or run backward under no_sync";
  set_message(verdict, fmt::format("Reduced twice: {}, before the step at {}", names_in_words(parameters, 2),
                                   to_string(found.step_at)));
  verdict.parameters = std::move(parameters);
  return verdict;
}

}  // namespace brigade::dist
