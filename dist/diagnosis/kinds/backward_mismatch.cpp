// backward_mismatch: the ranks are in different backwards.
//
// Severity: error
// When: end of backward
// Causes: `steps_differ`: ranks are in different backwards
#include <brigade/dist/diagnosis/report.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict backward_mismatch(std::span<const RankReport> reports) {
  Verdict verdict;
  verdict.kind = "backward_mismatch";
  verdict.cause.kind = CauseKind::StepsDiffer;
  verdict.iteration = reports.front().round;
  verdict.message = "the ranks are not in the same backward:";
  for (const RankReport& report : reports) {
    if (report.round != reports.front().round) verdict.ranks.push_back(report.rank);
    verdict.message += fmt::format("{} rank {} is in its reduced backward number {} (at {})",
                                   report.rank == 0 ? "" : ",", report.rank, report.round, to_string(report.backward));
  }
  verdict.cause.text = verdict.message;
  verdict.advice =
      "let every rank run the same number of backwards on the wrapped module (same number of batches, no skipped "
      "steps)";
  return verdict;
}

}  // namespace brigade::dist
