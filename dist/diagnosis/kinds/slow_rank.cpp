// slow_rank: one rank's gradients come late, several backwards in a row.
//
// Severity: warning
// When: end of backward
// Causes: `slow`
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/diagnosis/slow_rank.h>
#include <brigade/dist/diagnosis/wire.h>

#include <fmt/format.h>

namespace brigade::dist {

namespace {

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

class SlowRankAdvice final : public Advice {
 public:
  std::optional<Verdict> examine(FinishedBackward& backward) override {
    if (!backward.outcome().late) {
      streak_.add(std::nullopt);
      return std::nullopt;
    }
    if (said_ || looks_++ >= kLooks) return std::nullopt;
    const std::vector<ReadyTimes> times = times_of_all(backward);
    if (times.empty()) return std::nullopt;
    const std::optional<SlowRank> slow = find_slow_rank(times);
    said_ = streak_.add(slow);
    return said_ ? std::optional(slow_rank(*slow, backward.parameters(), backward.moment())) : std::nullopt;
  }

 private:
  // Who it is takes an exchange: not for ever, where the machine is uneven by itself.
  static constexpr int kLooks = 64;

  // None where the ranks have different numbers of parameters.
  static std::vector<ReadyTimes> times_of_all(FinishedBackward& backward) {
    const RoundEvents& events = backward.events();
    ReadyTimes mine;
    for (const int64_t ready : events.ready)
      mine.push_back(ready ? (ready - events.began) / 1000 : int64_t{-1});
    std::vector<ReadyTimes> times;
    for (const std::string& of_rank : backward.exchange(to_text(mine), "ready times")) {
      times.push_back(decoded<ReadyTimes>(of_rank));
      if (times.back().size() != backward.parameters().size()) return {};
    }
    return times;
  }

  SlowRankStreak streak_;
  int looks_ = 0;
  bool said_ = false;
};

const AddAdvice add_slow_rank("slow_rank", [] { return std::make_unique<SlowRankAdvice>(); });

}  // namespace

}  // namespace brigade::dist
