// slow_rank: one rank's gradients come late, several backwards in a row.
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict slow_rank(const SlowRank& slow, std::span<const NamedParameter> parameters, const Moment& moment) {
  Verdict verdict = verdict_at(moment, "slow_rank", Severity::Warning, CauseKind::Slow);
  verdict.ranks = {slow.rank};
  verdict.parameters.push_back(about(parameters[slow.parameter], {}, verdict.ranks));
  verdict.cause.text = fmt::format(
      "in {} backwards in a row rank {} was late: its last gradient came after {:.1f} ms, {:.1f} ms on the others; "
      "the first that is late is {}",
      SlowRankStreak::kBackwards, slow.rank, static_cast<double>(slow.last_us) * 1e-3,
      static_cast<double>(slow.others_us) * 1e-3, parameters[slow.parameter].name);
  verdict.message = verdict.cause.text + "; every rank waits for it";
  verdict.advice = "look at what that rank does before this parameter: a hook, a larger batch, a slower or busier core";
  return verdict;
}

}  // namespace brigade::dist
