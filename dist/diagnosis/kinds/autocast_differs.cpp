// autocast_differs: the ranks run forward under different autocasts, so gradients of different precision are averaged.
//
// Severity: warning
// When: before `step()`
// Causes: `modes_differ`: after four backwards in a row
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/errors/majority.h>

#include <fmt/format.h>

namespace brigade::dist {
namespace {

std::string in_words(const AutocastOnRank& autocast) {
  if (autocast.dtypes.empty()) return "ran without autocast";
  const std::string region = autocast.where ? fmt::format(" (the region at {})", to_string(autocast.where)) : "";
  return fmt::format("ran under {}{}", autocast.dtypes, region);
}

}  // namespace

std::optional<Verdict> autocast_differs(std::span<const StepOnRank> steps) {
  std::vector<std::string> dtypes, words;
  for (const StepOnRank& step : steps) {
    if (!step.autocast.is_known) return std::nullopt;
    dtypes.push_back(step.autocast.dtypes);
    words.push_back(in_words(step.autocast));
  }
  const std::vector<int> odd = odd_ranks(dtypes);
  if (odd.empty()) return std::nullopt;
  // The place of the first odd rank or, if it has none, of the first rank that has one.
  Verdict verdict = new_verdict("autocast_differs", Severity::Warning, CauseKind::ModesDiffer,
                                steps[static_cast<size_t>(odd.front())].autocast.where);
  for (size_t r = 0; r < steps.size() && !verdict.cause.place; ++r)
    verdict.cause.place = steps[r].autocast.where;
  verdict.ranks = outvoted(odd, steps.size());
  verdict.cause.op = "autocast";
  verdict.cause.text = by_rank_in_words(words);
  verdict.advice = "run forward under the same autocast on every rank, or under none on all";
  set_message(verdict, "Autocast differs between the ranks before the step at " + to_string(steps.front().where));
  return verdict;
}

}  // namespace brigade::dist
