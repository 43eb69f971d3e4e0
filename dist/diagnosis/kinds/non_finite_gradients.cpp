// non_finite_gradients: infinite or NaN on some rank before the reduction, and so on every rank
// after it.
//
// Severity: warning
// When: end of backward
// Causes: `non_finite`
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/diagnosis/wire.h>

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace brigade::dist {

namespace {

// What one rank saw.
struct NonFiniteOnRank {
  int rank = 0;
  Cause cause;
  std::vector<uint32_t> parameters;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NonFiniteOnRank, rank, cause, parameters)

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

// One, or none.
std::vector<NonFiniteOnRank> seen_on_this_rank(const FinishedBackward& backward) {
  NonFinite seen = backward.non_finite();
  const SourceLocation where = backward.moment().where;
  // On a device the loss was not looked at before.
  for (const Tensor& loss : seen.device_losses) {
    if (seen.loss || std::isfinite(detail::element_as_double(loss, 0))) continue;
    seen.loss = true;
    seen.blame_loss(where);
  }
  if (seen.parameters.empty() && !seen.loss) return {};
  if (!seen.loss) {
    seen.cause = {};
    seen.cause.kind = CauseKind::NonFinite;
    seen.cause.place = where;
    seen.cause.text = fmt::format("the loss was finite, and a gradient became infinite or NaN in the backward at {}",
                                  to_string(where));
  }
  return {{backward.rank(), std::move(seen.cause), std::move(seen.parameters)}};
}

// In the first of several such backwards in a row.
class NonFiniteGradients final : public Advice {
 public:
  std::optional<Verdict> examine(FinishedBackward& backward) override {
    const bool is_non_finite = backward.outcome().non_finite > 0;
    if (std::exchange(was_non_finite_, is_non_finite) || !is_non_finite) return std::nullopt;
    std::vector<NonFiniteOnRank> of_ranks;
    for (const std::string& text : backward.exchange(to_text(seen_on_this_rank(backward)), "non-finite gradients")) {
      for (NonFiniteOnRank& each : decoded<std::vector<NonFiniteOnRank>>(text))
        of_ranks.push_back(std::move(each));
    }
    return non_finite_gradients(of_ranks, backward.parameters(), backward.moment());
  }

 private:
  bool was_non_finite_ = false;
};

const AddAdvice add_non_finite_gradients("non_finite_gradients", [] { return std::make_unique<NonFiniteGradients>(); });

}  // namespace

}  // namespace brigade::dist
