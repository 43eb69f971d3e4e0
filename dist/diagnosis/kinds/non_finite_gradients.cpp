// non_finite_gradients: gradients are infinite or NaN on some rank before the reduction, and so on every rank after it.
//
// Severity: warning
// When: end of backward
// Causes: `non_finite`
#include <brigade/autograd/detail/findings.h>
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/errors/wire.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace brigade::dist {
namespace {

// What one rank saw.
struct NonFiniteOnRank {
  int rank = 0;
  Cause cause;
  std::vector<uint32_t> parameters;
  bool scaled = false;  // computed from a scaled loss: a loss scaler will check them
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NonFiniteOnRank, rank, cause, parameters, scaled)

// A loss scaler starts with a scale that is too large and lowers it, to 1 in at most this many steps.
constexpr int kStepsOfScaler = 24;

bool scaled(std::span<const NonFiniteOnRank> seen) {
  return std::any_of(seen.begin(), seen.end(), [](const NonFiniteOnRank& each) { return each.scaled; });
}

Verdict non_finite_gradients(std::span<const NonFiniteOnRank> seen, std::span<const NamedParameter> parameters,
                             const Moment& moment) {
  Verdict verdict = verdict_at(moment, "non_finite_gradients", Severity::Warning, CauseKind::NonFinite);
  std::map<uint32_t, std::vector<int>> ranks_of;
  for (const NonFiniteOnRank& of_rank : seen) {
    verdict.ranks.push_back(of_rank.rank);
    if (verdict.cause.text.empty() || (verdict.cause.op.empty() && !of_rank.cause.op.empty()))
      verdict.cause = of_rank.cause;
    for (const uint32_t parameter : of_rank.parameters)
      ranks_of[parameter].push_back(of_rank.rank);
  }
  verdict.advice =
      verdict.cause.op.empty()
          ? "look for numbers too large for their dtype, or run the step under autograd::AnomalyMode, which "
            "names the operation"
          : "fix the operation that is named";
  verdict.advice += "; skip the step on every rank alike";
  for (const auto& [position, ranks] : ranks_of)
    verdict.parameters.push_back(about(parameters[position], {}, ranks));
  if (scaled(seen))
    verdict.cause.text +=
        fmt::format(". The loss scaler has lowered its scale {} times in a row, without effect", kStepsOfScaler);
  const std::string names = names_in_words(verdict.parameters, 4);
  const std::string where = fmt::format("on {} in backward {} at {}", ranks_in_words(verdict.ranks), moment.iteration,
                                        to_string(moment.where));
  set_message(verdict, names.empty() ? fmt::format("Infinite or NaN: the loss {}, although no gradient is", where)
                                     : fmt::format("Infinite or NaN: the gradients of {} {}, and of every rank after "
                                                   "the reduction",
                                                   names, where));
  return verdict;
}

// One entry, or none if this rank saw only finite numbers.
std::vector<NonFiniteOnRank> seen_on_this_rank(const FinishedBackward& backward) {
  NonFinite seen = backward.non_finite();
  const SourceLocation where = backward.moment_of_numbers().where;
  // Losses on a device have not been checked yet.
  for (const Tensor& loss : seen.device_losses) {
    if (seen.loss || std::isfinite(brigade::detail::element_as_double(loss, 0))) continue;
    seen.loss = true;
    seen.note_loss(where);
  }
  if (seen.parameters.empty() && !seen.loss) return {};
  Cause cause;
  cause.kind = CauseKind::NonFinite;
  cause.op = seen.op;
  cause.place = seen.place;
  cause.text = seen.text;
  if (!seen.loss) {
    // The first non-finite result in the backward, if the backward looked for it.
    if (!seen.place) cause.place = where;
    cause.text = fmt::format("the loss was finite, and a gradient became infinite or NaN in the backward at {}{}",
                             to_string(where), seen.text);
    const auto& noticed = autograd::detail::stopped_gradients();
    if (seen.op.empty() && noticed.non_finite_op) {
      cause.op = noticed.non_finite_op;
      cause.place = noticed.non_finite_at;
      cause.text += fmt::format("; the first operation whose derivative is not finite is {} at {}", cause.op,
                                to_string(noticed.non_finite_at));
    }
  }
  return {{backward.rank(), std::move(cause), std::move(seen.parameters), any_is_scaled(backward.parameters())}};
}

// Reports the first of several non-finite backwards in a row. With a loss scaler, which skips their steps, reports only
// when lowering the scale kStepsOfScaler times did not help.
class NonFiniteGradients final : public Advice {
 public:
  std::optional<Verdict> examine(FinishedBackward& backward) override {
    in_a_row_ = backward.measured().non_finite > 0 ? in_a_row_ + 1 : 0;
    if (in_a_row_ != 1 && in_a_row_ != kStepsOfScaler) return std::nullopt;
    std::vector<NonFiniteOnRank> of_ranks;
    for (const std::string& text : backward.exchange(to_text(seen_on_this_rank(backward)), "non-finite gradients")) {
      for (NonFiniteOnRank& each : decoded<std::vector<NonFiniteOnRank>>(text))
        of_ranks.push_back(std::move(each));
    }
    // The same decision on every rank, since all hold the same texts.
    if (scaled(of_ranks) != (in_a_row_ == kStepsOfScaler)) return std::nullopt;
    return non_finite_gradients(of_ranks, backward.parameters(), backward.moment_of_numbers());
  }

 private:
  int in_a_row_ = 0;
};

const AddAdvice add_non_finite_gradients("non_finite_gradients", [] { return std::make_unique<NonFiniteGradients>(); });

}  // namespace
}  // namespace brigade::dist
