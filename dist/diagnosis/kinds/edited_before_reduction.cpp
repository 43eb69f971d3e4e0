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
  verdict.cause.text = "each rank does so by its own numbers, before the mean is taken";
  verdict.advice = "clip, scale or mask gradients after the backward that reduces them, before step()";
  set_message(verdict, fmt::format("Local gradient changed: {} on rank {}, by {} at {}", parameter.name, rank, op,
                                   to_string(where)));
  return verdict;
}

}  // namespace brigade::dist
