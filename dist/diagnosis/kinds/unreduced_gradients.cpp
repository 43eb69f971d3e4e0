// unreduced_gradients: an optimizer is about to use a gradient that is this rank's own.
//
// Severity: error
// When: before `step()`
// Causes: `not_reduced`, `set_by_hand`
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

Verdict unreduced_gradients(const UnreducedGradient& found, ParameterVerdict parameter) {
  Verdict verdict;
  verdict.kind = "unreduced_gradients";
  verdict.parameters.push_back(std::move(parameter));
  if (found.by_hand) {
    verdict.cause.kind = CauseKind::SetByHand;
    verdict.cause.place = found.set_at;
    verdict.cause.text = fmt::format(
        "the gradient was set at {}, not made by an observed backward: it is this rank's own", to_string(found.set_at));
    verdict.advice =
        "let backward() make the gradient, or average it over the ranks after setting it "
        "(group->all_reduce(p.grad(), {.op = ReduceOp::Avg}))";
    return verdict;
  }
  verdict.cause.kind = CauseKind::NotReduced;
  verdict.cause.place = found.last_local;
  verdict.cause.text = fmt::format(
      "step() at {} with {} of {} micro-batches reduced: the last backward, at {}, ran under no_sync (opened at {})",
      to_string(found.step_at), found.backwards - std::min(found.local, found.backwards), found.backwards,
      to_string(found.last_local), to_string(found.no_sync_at));
  verdict.advice = "run the last backward before step() outside no_sync: it reduces what has gathered";
  return verdict;
}

}  // namespace brigade::dist
