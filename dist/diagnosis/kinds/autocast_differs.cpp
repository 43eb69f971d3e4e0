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
  if (autocast.dtypes.empty()) return "no autocast";
  if (!autocast.where) return autocast.dtypes;
  return fmt::format("{}, by the region at {}", autocast.dtypes, to_string(autocast.where));
}

}  // namespace

std::optional<Verdict> autocast_differs(std::span<const StepOnRank> steps) {
  std::vector<std::string> dtypes;
  std::string each_rank;
  for (size_t r = 0; r < steps.size(); ++r) {
    if (!steps[r].autocast.is_known) return std::nullopt;
    dtypes.push_back(steps[r].autocast.dtypes);
    each_rank += fmt::format("{}rank {}: {}", r > 0 ? "; " : "", r, in_words(steps[r].autocast));
  }
  const std::vector<int> odd = odd_ranks(dtypes);
  if (odd.empty()) return std::nullopt;
  Verdict verdict;
  verdict.kind = "autocast_differs";
  verdict.severity = Severity::Warning;
  verdict.ranks = outvoted(odd, steps.size());
  verdict.cause.kind = CauseKind::ModesDiffer;
  verdict.cause.op = "autocast";
  // The place of the first odd rank or, if it has none, of the first rank that has one.
  const AutocastOnRank& told = steps[static_cast<size_t>(odd.front())].autocast;
  verdict.cause.place = told.where;
  for (size_t r = 0; r < steps.size() && !verdict.cause.place; ++r)
    verdict.cause.place = steps[r].autocast.where;
  verdict.cause.text = fmt::format(
      "the ranks run the forward of the wrapper under different autocasts ({}), so the gradients that the step at {} has "
      "the mean of are of different precision",
      each_rank, to_string(steps.front().where));
  verdict.message = verdict.cause.text;
  verdict.advice = "run forward under the same autocast on every rank, in the same dtype, or under none on all";
  return verdict;
}

}  // namespace brigade::dist
