// gradients_edited: reduced gradients were changed by hand, and are not alike on all ranks since.
//
// Severity: error
// When: before `step()`
// Causes: `edited_by_hand`: after the reduction, and the values are not alike on all ranks since
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace brigade::dist {

namespace {

bool makes(const StepOnRank& step, const StepOnRank::Edit& edit) {
  return std::any_of(step.edits.begin(), step.edits.end(), [&](const StepOnRank::Edit& other) {
    return other.parameter == edit.parameter && other.op == edit.op && other.where == edit.where;
  });
}

bool is_everywhere(std::span<const StepOnRank> steps, const StepOnRank::Edit& edit) {
  return steps.size() > 1 &&
         std::all_of(steps.begin(), steps.end(), [&](const StepOnRank& step) { return makes(step, edit); });
}

// The ranks whose gradients are like those of most others have made it too, or only they have: it has changed nothing.
bool is_vain(std::span<const StepOnRank> steps, const std::vector<int>& odd, size_t rank,
             const StepOnRank::Edit& edit) {
  if (odd.empty()) return false;
  const auto is_odd = [&](size_t r) { return std::find(odd.begin(), odd.end(), static_cast<int>(r)) != odd.end(); };
  if (!is_odd(rank)) return true;
  for (size_t r = 0; r < steps.size(); ++r) {
    if (!is_odd(r) && makes(steps[r], edit)) return true;
  }
  return false;
}

bool is_set_by_hand(std::span<const StepOnRank> steps, const std::string& parameter) {
  return std::any_of(steps.begin(), steps.end(), [&](const StepOnRank& step) {
    return std::any_of(step.set_by_hand.begin(), step.set_by_hand.end(),
                       [&](const StepOnRank::SetByHand& set) { return set.parameter == parameter; });
  });
}

// The first edit that not all ranks made, or made alike.
void blame(const StepOnRank::Edit& edit, size_t rank, bool everywhere, Cause& cause) {
  cause.op = edit.op;
  cause.module = module_of(edit.parameter);
  cause.text =
      everywhere
          ? fmt::format("{} at {} changed the gradient of {} after the reduction, on every rank to other values",
                        edit.op, to_string(edit.where), edit.parameter)
          : fmt::format("{} at {} changed the gradient of {} on rank {} after the reduction, and not on every rank",
                        edit.op, to_string(edit.where), edit.parameter, rank);
  cause.place = edit.where;
}

}  // namespace

const GradientsApart* find(std::span<const GradientsApart> apart, const std::string& parameter) {
  const auto found = std::find_if(apart.begin(), apart.end(),
                                  [&](const GradientsApart& each) { return each.parameter.name == parameter; });
  return found == apart.end() ? nullptr : &*found;
}

std::optional<Verdict> gradients_edited(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart) {
  Verdict verdict;
  verdict.kind = "gradients_edited";
  verdict.cause.kind = CauseKind::EditedByHand;
  std::set<std::string> named;
  std::set<int> editing;
  // An edit that some ranks have not made says more than one that all have; least of all one that seems vain, which
  // it is not where most ranks are wrong.
  struct Kind {
    bool everywhere, vain;
  };
  for (const Kind kind : {Kind{false, false}, Kind{true, false}, Kind{false, true}}) {
    for (size_t r = 0; r < steps.size(); ++r) {
      for (const StepOnRank::Edit& edit : steps[r].edits) {
        const GradientsApart* const differs = find(apart, edit.parameter);
        if (!differs || is_everywhere(steps, edit) != kind.everywhere) continue;
        if (kind.everywhere && is_set_by_hand(steps, edit.parameter)) continue;  // that says more
        if (!kind.everywhere && is_vain(steps, differs->odd, r, edit) != kind.vain) continue;
        editing.insert(static_cast<int>(r));
        if (verdict.cause.text.empty()) blame(edit, r, kind.everywhere, verdict.cause);
        if (named.insert(edit.parameter).second)
          verdict.parameters.push_back(about(differs->parameter, {}, {static_cast<int>(r)}));
      }
    }
    if (!editing.empty()) break;
  }
  if (editing.empty()) return std::nullopt;
  verdict.advice =
      "edit reduced gradients on every rank alike (by the same numbers: random ones need the same seed), or before the "
      "reduction in a gradient hook";
  verdict.ranks.assign(editing.begin(), editing.end());
  return verdict;
}

}  // namespace brigade::dist
