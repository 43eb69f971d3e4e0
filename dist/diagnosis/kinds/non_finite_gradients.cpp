// non_finite_gradients: infinite or NaN on some rank before the reduction, and so on every rank
// after it.
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <map>

namespace brigade::dist {

Verdict non_finite_gradients(std::span<const NonFiniteOnRank> seen, std::span<const NamedParameter> parameters,
                             const Moment& moment) {
  Verdict verdict = verdict_at(moment, "non_finite_gradients", Severity::Warning, CauseKind::NonFinite);
  verdict.advice =
      "fix the operation that is named; a zero weight does not help, since 0 * inf is NaN. Skip the step on every "
      "rank alike, or use a gradient scaler with float16";
  std::map<uint32_t, std::vector<int>> ranks_of;
  for (const NonFiniteOnRank& of_rank : seen) {
    verdict.ranks.push_back(of_rank.rank);
    if (verdict.cause.text.empty()) verdict.cause = of_rank.cause;
    for (const uint32_t parameter : of_rank.parameters)
      ranks_of[parameter].push_back(of_rank.rank);
  }
  for (const auto& [position, ranks] : ranks_of)
    verdict.parameters.push_back(about(parameters[position], {}, ranks));
  const std::string names = names_in_words(verdict.parameters, 4);
  verdict.message = fmt::format(
      "gradients of {} are infinite or NaN on {} before the reduction in backward {}, and so on every rank after it: "
      "{}",
      names.empty() ? "no single parameter" : names, ranks_in_words(verdict.ranks), moment.iteration,
      verdict.cause.text);
  return verdict;
}

}  // namespace brigade::dist
