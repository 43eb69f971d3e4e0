// edited_before_reduction: a gradient was changed on one rank while it was still local.
//
// Severity: warning
// When: in backward
// Causes: `edited_by_hand`
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict edited_before_reduction(const std::string& op, SourceLocation where, int rank, const NamedParameter& parameter,
                                const Moment& moment) {
  Verdict verdict = verdict_at(moment, "edited_before_reduction", Severity::Warning, CauseKind::EditedByHand);
  verdict.ranks = {rank};
  verdict.parameters.push_back(about(parameter, {}, verdict.ranks));
  verdict.cause.op = op;
  if (where.line() != 0) verdict.cause.place = where;
  verdict.cause.text = fmt::format(
      "{} at {} changed the gradient of {} on rank {} while it was still local: each rank does so by its own numbers, "
      "before the mean is taken",
      op, to_string(where), parameter.name, rank);
  verdict.message = verdict.cause.text;
  verdict.advice =
      "clip, scale or mask gradients after the reduction: after the backward outside no_sync, before step()";
  return verdict;
}

}  // namespace brigade::dist
