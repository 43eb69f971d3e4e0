// gradient_outlier: one rank's gradients are of another size than those of the others.
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <cmath>

namespace brigade::dist {

Verdict gradient_outlier(const Outlier& found, int backwards, std::span<const NamedParameter> parameters,
                         const Moment& moment) {
  Verdict verdict = verdict_at(moment, "gradient_outlier", Severity::Warning, CauseKind::NormOutlier);
  verdict.ranks = found.ranks;
  for (const Outlier::Parameter& each : found.parameters)
    verdict.parameters.push_back(about(parameters[each.position], each.others, {each.rank}));
  verdict.cause.text =
      fmt::format("before the reduction in backward {}{} the gradient of {} on {} is {:.3g} times that of the others",
                  moment.iteration, found.hooks_differ ? "" : fmt::format(" as in the {} before", backwards - 1),
                  names_in_words(verdict.parameters, verdict.parameters.size()), ranks_in_words(verdict.ranks),
                  std::exp2(found.distance / 2));
  verdict.advice =
      "look for a loss that is summed instead of averaged, other data, or another learning-rate scale there";
  if (found.hooks_differ && found.hook) {
    verdict.cause.kind = CauseKind::HookDiffers;
    verdict.cause.text += "; a gradient hook is registered there at " + to_string(found.hook);
    verdict.cause.place = found.hook;
    verdict.advice = "register the same gradient hooks on every rank, or none";
  }
  verdict.message = verdict.cause.text;
  return verdict;
}

}  // namespace brigade::dist
