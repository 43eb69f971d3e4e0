// The kinds of verdicts on gradients that are not the means of all ranks.
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

// edited_before_reduction: a gradient was changed on one rank while it was still local.
//
// Severity: warning
// When: in backward
// Causes: `edited_by_hand`
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

// wrongly_scaled: a rank found gradients that the loss scaler should have unscaled, or scaled by another factor.
//
// Severity: error
// When: before `step()`
// Causes: `wrong_scale`: reported on the ranks whose own gradients are right; the others throw the scaler's error
Verdict wrongly_scaled(const autograd::ScaleFault& fault, SourceLocation step_at, ParameterVerdict parameter) {
  Verdict verdict = new_verdict("wrongly_scaled", Severity::Error, CauseKind::WrongScale, step_at);
  verdict.what = "Wrong scale";
  verdict.parameters.push_back(std::move(parameter));
  const std::string others = fault.others == 0 ? "" : fmt::format(" (and {} more)", fault.others);
  verdict.cause.text = fmt::format("the gradient{} {}", others, fault.text);
  verdict.advice = fault.advice;
  return verdict;
}

// unreduced_gradients: an optimizer is about to use a gradient that was not averaged over the ranks.
//
// Severity: error
// When: before `step()`
// Causes: `not_reduced`, `set_by_hand`
Verdict unreduced_gradients(const UnreducedGradient& found, ParameterVerdict parameter) {
  Verdict verdict = new_verdict("unreduced_gradients", Severity::Error, CauseKind::NotReduced);
  verdict.what = "Not averaged";
  verdict.parameters.push_back(std::move(parameter));
  if (found.by_hand) {
    verdict.cause.kind = CauseKind::SetByHand;
    verdict.cause.place = found.set_at;
    verdict.cause.text =
        fmt::format("the gradient was set at {}, and the ranks' values differ", to_string(found.set_at));
    verdict.advice = "let backward() make it, or average it after setting it";
    return verdict;
  }
  if (found.reducing_at.line() != 0) {
    verdict.cause.place = found.step_at;
    verdict.cause.text =
        fmt::format("the step comes in the middle of the backward at {}, and the means are there when that ends",
                    to_string(found.reducing_at));
    verdict.advice = "step after backward(), or let the wrapper step in it: ddp.apply_optimizer_in_backward(make)";
    return verdict;
  }
  verdict.cause.place = found.last_local;
  verdict.cause.text = fmt::format(
      "{}the last backward, at {}, ran under no_sync (opened at {})",
      found.backwards < 2 ? ""
                          : fmt::format("{} of {} micro-batches were reduced: ",
                                        found.backwards - std::min(found.local, found.backwards), found.backwards),
      to_string(found.last_local), to_string(found.no_sync_at));
  verdict.advice = "leave no_sync before the last backward of each step, which then reduces them all";
  return verdict;
}

namespace {

// Whether to blame `rank`, which set the gradient: it is in `differs.odd`, or no rank in `differs.odd` set its own.
bool is_to_blame(std::span<const StepOnRank> steps, const GradientsApart& differs, size_t rank) {
  const auto has_set = [&](int each) {
    return std::ranges::find(steps[static_cast<size_t>(each)].set_by_hand, differs.parameter.name,
                             &StepOnRank::SetByHand::parameter) != steps[static_cast<size_t>(each)].set_by_hand.end();
  };
  return std::ranges::none_of(differs.odd, has_set) ||
         std::ranges::find(differs.odd, static_cast<int>(rank)) != differs.odd.end();
}

}  // namespace

std::vector<Verdict> gradients_set_by_hand(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart) {
  std::vector<Verdict> verdicts;
  for (size_t r = 0; r < steps.size(); ++r) {
    for (const StepOnRank::SetByHand& set : steps[r].set_by_hand) {
      const GradientsApart* const differs = find(apart, set.parameter);
      if (!differs || !is_to_blame(steps, *differs, r)) continue;
      const int rank = static_cast<int>(r);
      Verdict verdict = unreduced_gradients({.by_hand = true,
                                             .set_at = set.where,
                                             .backwards = 0,
                                             .local = 0,
                                             .last_local = {},
                                             .no_sync_at = {},
                                             .step_at = steps[r].where},
                                            about(differs->parameter, {}, {rank}));
      verdict.ranks = {rank};
      const auto known = std::find_if(verdicts.begin(), verdicts.end(),
                                      [&](const Verdict& each) { return each.cause.same_as(verdict.cause); });
      if (known == verdicts.end()) {
        verdicts.push_back(std::move(verdict));
        continue;
      }
      if (known->ranks.back() != rank) known->ranks.push_back(rank);
      const auto named =
          std::find_if(known->parameters.begin(), known->parameters.end(),
                       [&](const ParameterVerdict& each) { return each.name == differs->parameter.name; });
      if (named == known->parameters.end()) {
        known->parameters.push_back(verdict.parameters.front());
      } else {
        named->missing_ranks.push_back(rank);
      }
    }
  }
  return verdicts;
}

}  // namespace brigade::dist
