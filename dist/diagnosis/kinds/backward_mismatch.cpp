// backward_mismatch: the ranks are in different backwards.
//
// Severity: error
// When: end of backward
// Causes: `steps_differ`: ranks are in different backwards, or do not agree which wrapper averages a shared layer
#include <brigade/dist/diagnosis/report.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {
namespace {

// The first parameter whose gradient another wrapper averages on some ranks only, if all are in one backward. Otherwise
// the number of parameters.
size_t disputed(std::span<const RankReport> reports) {
  const std::vector<bool>& first = reports.front().elsewhere;
  size_t found = first.size();
  for (const RankReport& report : reports) {
    if (report.round != reports.front().round) return first.size();
    const auto differ = std::ranges::mismatch(first, report.elsewhere).in1;
    found = std::min(found, static_cast<size_t>(differ - first.begin()));
  }
  return found;
}

}  // namespace

Verdict backward_mismatch(std::span<const RankReport> reports, std::span<const NamedParameter> parameters) {
  const RankReport& first = reports.front();
  const size_t shared = disputed(reports);
  const bool is_disputed = shared < first.elsewhere.size();
  Verdict verdict = new_verdict("backward_mismatch", Severity::Error, CauseKind::StepsDiffer);
  verdict.iteration = first.round;
  std::vector<std::string> each;
  for (const RankReport& report : reports) {
    const bool differs =
        is_disputed ? report.elsewhere[shared] != first.elsewhere[shared] : report.round != first.round;
    if (differs) verdict.ranks.push_back(report.rank);
    const std::string what = !is_disputed               ? fmt::format("in backward {}", report.round)
                             : report.elsewhere[shared] ? "another one"
                                                        : "this one";
    each.push_back(fmt::format("{} (at {})", what, to_string(report.backward)));
  }
  verdict.cause.text = is_disputed ? "the losses of the ranks reach different wrappers that share it"
                                   : "a rank left out a backward, or ran one more than the others";
  verdict.advice = is_disputed ? "call the wrappers, not the modules in them, and let the loss of each rank reach the "
                                 "same wrappers in every backward"
                               : "run the same number of backwards on every rank (as many batches, no skipped steps)";
  set_message(verdict, fmt::format("{}: {}",
                                   is_disputed ? "The ranks do not agree which wrapper averages the shared parameter " +
                                                     parameters[shared].name
                                               : "The ranks are not in the same backward",
                                   by_rank_in_words(each)));
  return verdict;
}

}  // namespace brigade::dist
