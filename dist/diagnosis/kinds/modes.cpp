// The kinds of verdicts on modes that differ between the ranks.
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/errors/majority.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace brigade::dist {

// autocast_differs: the ranks run forward under different autocasts, so gradients of different precision are averaged.
//
// Severity: warning
// When: before `step()`
// Causes: `modes_differ`: after four backwards in a row

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

// modes_differ: a layer trains on some ranks and evaluates on others.
//
// Severity: warning
// When: before `step()`
// Causes: `modes_differ`: `train()` was not called after an evaluation
std::optional<Verdict> modes_differ(std::span<const StepOnRank> steps) {
  std::map<std::string, std::vector<int>> evaluating;
  std::vector<int> known;
  for (size_t r = 0; r < steps.size(); ++r) {
    if (!steps[r].modes_are_known) continue;
    known.push_back(static_cast<int>(r));
    for (const std::string& layer : steps[r].evaluating)
      evaluating[layer].push_back(static_cast<int>(r));
  }
  std::erase_if(evaluating, [&](const auto& each) { return each.second == known; });
  if (evaluating.empty()) return std::nullopt;
  const auto& [layer, ranks] = *evaluating.begin();
  std::vector<int> training;
  for (const int rank : known) {
    if (std::ranges::find(ranks, rank) == ranks.end()) training.push_back(rank);
  }
  Verdict verdict = new_verdict("modes_differ", Severity::Warning, CauseKind::ModesDiffer);
  // On a tie, no rank is blamed.
  if (ranks.size() != training.size()) verdict.ranks = ranks.size() > training.size() ? training : ranks;
  verdict.cause.module = layer;
  verdict.cause.place = steps[static_cast<size_t>(verdict.ranks.empty() ? known.front() : verdict.ranks.front())].where;
  const size_t others = evaluating.size() - 1;
  verdict.cause.text = "train() or eval() was not called on every rank";
  verdict.advice = "call train() after an evaluation, and eval() where layers stay in evaluation, on every rank";
  set_message(verdict, fmt::format("Layer `{}`{} evaluates on {} and trains on {}, in the forward of the step at {}",
                                   layer, others == 0 ? "" : fmt::format(" (and {} more)", others),
                                   ranks_in_words(ranks), ranks_in_words(training), to_string(verdict.cause.place)));
  return verdict;
}

}  // namespace brigade::dist
