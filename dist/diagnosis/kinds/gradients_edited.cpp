// gradients_edited: reduced gradients were changed by hand, and not on every rank alike.
//
// Severity: error
// When: before `step()`
// Causes: `edited_by_hand`: after the reduction, not on every rank alike
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/diagnosis/majority.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace brigade::dist {

namespace {

std::string key_of(const StepOnRank& step) {
  std::string key;
  for (const StepOnRank::Edit& edit : step.edits)
    key += edit.parameter + "/" + edit.op + ";";
  return key;
}

bool is_everywhere(std::span<const StepOnRank> steps, const StepOnRank::Edit& edit) {
  return steps.size() > 1 && std::all_of(steps.begin(), steps.end(), [&](const StepOnRank& step) {
           return std::any_of(step.edits.begin(), step.edits.end(), [&](const StepOnRank::Edit& other) {
             return other.parameter == edit.parameter && other.op == edit.op;
           });
         });
}

// The first edit that not all ranks made.
void blame(const StepOnRank::Edit& edit, size_t rank, Cause& cause) {
  cause.op = edit.op;
  cause.module = module_of(edit.parameter);
  cause.text = fmt::format("{} at {} changed the gradient of {} on rank {} after the reduction, and not on every rank",
                           edit.op, to_string(edit.where), edit.parameter, rank);
  cause.place = edit.where;
}

}  // namespace

std::optional<Verdict> gradients_edited(std::span<const StepOnRank> steps, std::span<const NamedParameter> parameters) {
  std::vector<std::string> keys;
  for (const StepOnRank& step : steps)
    keys.push_back(key_of(step));
  const std::vector<int> odd = odd_ranks(keys);
  if (odd.empty()) return std::nullopt;
  Verdict verdict;
  verdict.kind = "gradients_edited";
  verdict.cause.kind = CauseKind::EditedByHand;
  std::set<std::string> named;
  std::set<int> editing;
  for (size_t r = 0; r < steps.size(); ++r) {
    for (const StepOnRank::Edit& edit : steps[r].edits) {
      if (is_everywhere(steps, edit)) continue;
      editing.insert(static_cast<int>(r));
      if (verdict.cause.text.empty()) blame(edit, r, verdict.cause);
      if (!named.insert(edit.parameter).second) continue;
      for (const NamedParameter& each : parameters) {
        if (each.name == edit.parameter) verdict.parameters.push_back(about(each, {}, {static_cast<int>(r)}));
      }
    }
  }
  if (verdict.cause.text.empty()) verdict.cause.text = "gradients were edited a different number of times on the ranks";
  verdict.advice = "edit reduced gradients on every rank alike, or before the reduction in a gradient hook";
  verdict.ranks = editing.empty() ? odd : std::vector<int>(editing.begin(), editing.end());
  return verdict;
}

}  // namespace brigade::dist
