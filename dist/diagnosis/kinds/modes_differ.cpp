// modes_differ: a layer trains on some ranks and evaluates on others.
//
// Severity: warning
// When: before `step()`
// Causes: `modes_differ`: `train()` was not called after an evaluation
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace brigade::dist {

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
  Verdict verdict;
  verdict.kind = "modes_differ";
  verdict.severity = Severity::Warning;
  // On a tie, no rank is blamed.
  if (ranks.size() != training.size()) verdict.ranks = ranks.size() > training.size() ? training : ranks;
  verdict.cause.kind = CauseKind::ModesDiffer;
  verdict.cause.module = layer;
  verdict.cause.place = steps[static_cast<size_t>(verdict.ranks.empty() ? known.front() : verdict.ranks.front())].where;
  const size_t others = evaluating.size() - 1;
  verdict.cause.text = fmt::format(
      "the layer `{}`{} is in evaluation (eval()) on {} and in training (train()) on {}, in a forward that the "
      "step at {} has its gradients from",
      layer, others == 0 ? "" : fmt::format(", with {} other{},", others, others > 1 ? "s" : ""), ranks_in_words(ranks),
      ranks_in_words(training), to_string(verdict.cause.place));
  verdict.message = verdict.cause.text;
  verdict.advice =
      "call train() after an evaluation, on each rank that has called eval(); and eval() on every rank where layers are "
      "to stay in evaluation";
  return verdict;
}

}  // namespace brigade::dist
