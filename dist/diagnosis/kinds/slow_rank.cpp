// slow_rank: one rank's gradients come late, several backwards in a row.
//
// Severity: warning
// When: end of backward
// Causes: `slow`
#include <brigade/core/clock.h>
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/diagnosis/numbers.h>
#include <brigade/dist/diagnosis/slow_rank.h>
#include <brigade/dist/errors/wire.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {
namespace {

bool is_late(double by_ms, double others_ms) { return by_ms > 12 && by_ms > others_ms / 2; }

int64_t median(std::vector<int64_t> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// The times of the other ranks for one parameter.
std::vector<int64_t> times_of_others(std::span<const ReadyTimes> ranks, size_t slow, uint32_t parameter) {
  std::vector<int64_t> others;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (r != slow && ranks[r][parameter] >= 0) others.push_back(ranks[r][parameter]);
  }
  return others;
}

uint32_t first_late_parameter(std::span<const ReadyTimes> ranks, size_t slow, int64_t lost) {
  const ReadyTimes& times = ranks[slow];
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < times.size(); ++i) {
    if (times[i] >= 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return times[a] < times[b]; });
  for (const uint32_t parameter : order) {
    const std::vector<int64_t> others = times_of_others(ranks, slow, parameter);
    if (!others.empty() && times[parameter] - median(others) > lost / 2) return parameter;
  }
  return order.back();
}

}  // namespace

std::optional<SlowRank> find_slow_rank(std::span<const ReadyTimes> ranks) {
  std::vector<std::pair<int64_t, size_t>> last;  // time of the last gradient, rank
  for (size_t r = 0; r < ranks.size(); ++r) {
    const auto latest = std::max_element(ranks[r].begin(), ranks[r].end());
    if (latest != ranks[r].end() && *latest >= 0) last.emplace_back(*latest, r);
  }
  if (last.size() < 2) return std::nullopt;
  const auto slowest = std::max_element(last.begin(), last.end());
  const auto [time, rank] = *slowest;
  last.erase(slowest);
  std::vector<int64_t> others;
  for (const auto& [other, unused] : last)
    others.push_back(other);
  const int64_t typical = median(std::move(others));
  if (!is_late(static_cast<double>(time - typical) * 1e-3, static_cast<double>(typical) * 1e-3)) return std::nullopt;
  return SlowRank{static_cast<int>(rank), time, typical, first_late_parameter(ranks, rank, time - typical)};
}

bool may_have_slow_rank(double mean_ms, double variance, int ranks) {
  const double distance = distance_of_one(variance, ranks);
  return is_late(distance, mean_ms - distance / ranks);
}

bool SlowRankStreak::add(const std::optional<SlowRank>& found) {
  const int rank = found ? found->rank : -1;
  backwards_ = rank < 0 ? 0 : rank == rank_ ? backwards_ + 1 : 1;
  rank_ = rank;
  return backwards_ >= kBackwards;
}

namespace {

Verdict slow_rank(const SlowRank& slow, std::span<const NamedParameter> parameters, const Moment& moment) {
  Verdict verdict = verdict_at(moment, "slow_rank", Severity::Warning, CauseKind::Slow);
  verdict.ranks = {slow.rank};
  verdict.parameters.push_back(about(parameters[slow.parameter], {}, verdict.ranks));
  verdict.cause.text = fmt::format(
      "its last gradient came after {:.1f} ms, those of the others after {:.1f} ms; the first late one is {}",
      static_cast<double>(slow.last_us) * 1e-3, static_cast<double>(slow.others_us) * 1e-3,
      parameters[slow.parameter].name);
  verdict.advice = "look at what it does before that: a hook, a larger batch, a slower or busier core";
  set_message(verdict, fmt::format("Rank {} was late in {} backwards in a row, up to number {} at {}", slow.rank,
                                   SlowRankStreak::kBackwards, moment.iteration, to_string(moment.where)));
  return verdict;
}

class SlowRankAdvice final : public Advice, private Statistic {
 public:
  Statistic* statistic() override { return this; }
  // The ranks exchange their times only after several late backwards in a row: a single one, which happens now and then
  // on a busy machine, changes neither the cost of a program nor the numbers of its collectives.
  std::optional<Verdict> examine(FinishedBackward& backward) override {
    if (!is_late_) {
      in_a_row_ = 0;
      kept_.clear();
      streak_.add(std::nullopt);
      return std::nullopt;
    }
    if (said_ || looks_ == kLooks) return std::nullopt;
    kept_.push_back(times_of(backward));
    if (++in_a_row_ < SlowRankStreak::kBackwards) return std::nullopt;
    ++looks_;
    std::optional<SlowRank> slow;
    for (const std::vector<ReadyTimes>& ranks : times_of_all(backward)) {
      slow = find_slow_rank(ranks);
      said_ = streak_.add(slow);
    }
    return said_ ? std::optional(slow_rank(*slow, backward.parameters(), backward.moment())) : std::nullopt;
  }

 private:
  // Milliseconds from the start of backward to the launch of a bucket.
  Kind kind() const override { return Kind::Measure; }
  void begin(const StartedBackward&) override {
    began_ = now_ns();
    is_late_ = false;
  }
  uint64_t value() override { return static_cast<uint64_t>((now_ns() - began_ + 500'000) / 1'000'000); }
  void read(const WordReading& reading) override {
    is_late_ =
        is_late_ || (reading.all_have_gradients && may_have_slow_rank(reading.mean, reading.variance, reading.ranks));
  }

  // Limits the exchanges on a machine that is uneven by itself.
  static constexpr int kLooks = 64;

  // The times of this rank.
  static ReadyTimes times_of(FinishedBackward& backward) {
    const RoundEvents& events = backward.events();
    ReadyTimes mine;
    for (const int64_t ready : events.ready)
      mine.push_back(ready ? (ready - events.began) / 1000 : int64_t{-1});
    return mine;
  }

  // For each backward in kept_, the times of all ranks, or nothing if the ranks have different numbers of parameters or
  // of kept backwards. Clears kept_.
  std::vector<std::vector<ReadyTimes>> times_of_all(FinishedBackward& backward) {
    std::vector<std::vector<ReadyTimes>> all(kept_.size());
    const std::string mine = to_text(std::exchange(kept_, {}));
    bool alike = true;
    for (const std::string& text : backward.exchange(mine, "ready times")) {
      const auto of_rank = decoded<std::vector<ReadyTimes>>(text);
      alike = alike && of_rank.size() == all.size();
      for (size_t i = 0; alike && i < all.size(); ++i) {
        alike = of_rank[i].size() == backward.parameters().size();
        all[i].push_back(of_rank[i]);
      }
    }
    return alike ? all : std::vector<std::vector<ReadyTimes>>(all.size());
  }

  int64_t began_ = 0;     // when this backward did
  bool is_late_ = false;  // a rank may be late in this backward
  SlowRankStreak streak_;
  std::vector<ReadyTimes> kept_;  // of this rank, in the late backwards not exchanged yet
  int in_a_row_ = 0;              // late backwards
  int looks_ = 0;
  bool said_ = false;
};

const AddAdvice add_slow_rank("slow_rank", [] { return std::make_unique<SlowRankAdvice>(); });

}  // namespace
}  // namespace brigade::dist
