// uneven_micro_batches: the ranks accumulated different numbers of backwards in a reduced gradient.
//
// Severity: warning
// When: end of backward
// Causes: `uneven_batches`
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/errors/wire.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace brigade::dist {

// The number of backwards in one rank's gradients, and those of them kept from earlier reductions.
struct GatheredBackwards {
  int64_t count = 0;
  KeptBackwards kept;
  double share = 0;           // of the rank's data that a backward counts for, times `count`
  bool adds_samples = false;  // a sum over samples, which the program divides by what it likes
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KeptBackwards, count, at)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GatheredBackwards, count, kept, share, adds_samples)

namespace {

std::string in_words(const GatheredBackwards& each) {
  if (each.kept.count == 0) return fmt::format("has {}", each.count);
  return fmt::format("has {} ({} averaged before, the latest at {}, and not cleared since)", each.count,
                     each.kept.count, to_string(each.kept.at));
}

Verdict uneven_micro_batches(std::span<const GatheredBackwards> by_rank, const Moment& moment) {
  Verdict verdict = verdict_at(moment, "uneven_micro_batches", Severity::Warning, CauseKind::UnevenBatches);
  std::vector<std::string> counts;
  for (size_t r = 0; r < by_rank.size(); ++r) {
    const auto alike = std::ranges::count(by_rank, by_rank[r].count, &GatheredBackwards::count);
    if (alike * 2 <= static_cast<std::ptrdiff_t>(by_rank.size())) verdict.ranks.push_back(static_cast<int>(r));
    counts.push_back(in_words(by_rank[r]));
  }
  verdict.cause.text = "the ranks do not count alike in the mean";
  verdict.advice = "run as many backwards under no_sync on every rank before the one that reduces";
  const auto kept = [](const GatheredBackwards& each) { return each.kept.count; };
  const auto most = std::ranges::max_element(by_rank, {}, kept);
  if (std::ranges::count(by_rank, most->kept.count, kept) != std::ssize(by_rank)) {
    verdict.cause.place = most->kept.at;
    verdict.cause.text = "gradients were not cleared between backwards on every rank";
    verdict.advice = "call zero_grad() between those backwards on every rank, or, where they are to add up, on none";
  }
  set_message(verdict, fmt::format("Different numbers of micro-batches in the mean of backward {} at {}: {}",
                                   moment.iteration, to_string(moment.where), by_rank_in_words(counts)));
  return verdict;
}

// Whether the losses make up for it: each is divided by the number of its rank, or a sum.
bool are_meant(std::span<const GatheredBackwards> by_rank) {
  const double share = by_rank.front().share;
  return std::ranges::all_of(by_rank, [&](const GatheredBackwards& each) {
    return each.kept.count == 0 && (each.adds_samples || std::abs(each.share - share) <= 1e-6 * std::abs(share));
  });
}

class UnevenMicroBatches final : public Advice, private Statistic {
 public:
  Statistic* statistic() override { return this; }
  std::optional<Verdict> examine(FinishedBackward& backward) override {
    if (!differs_ || said_ || looks_++ >= kLooks) return std::nullopt;
    std::vector<GatheredBackwards> by_rank;
    for (const std::string& of_rank : backward.exchange(to_text(own_), "numbers of micro-batches"))
      by_rank.push_back(decoded<GatheredBackwards>(of_rank));
    if (are_meant(by_rank)) return std::nullopt;
    said_ = true;
    return uneven_micro_batches(by_rank, backward.moment());
  }

 private:
  Kind kind() const override { return Kind::Number; }
  void begin(const StartedBackward& backward) override {
    own_ = {.count = backward.gathered, .kept = backward.kept};
    const LossFactor loss = backward.plan ? factor_of(*backward.plan, backward.rows) : LossFactor();
    own_.share = loss.factor * static_cast<double>(own_.count);
    own_.adds_samples = loss.adds_samples;
    differs_ = false;
  }
  uint64_t value() override { return static_cast<uint64_t>(own_.count); }
  void read(const WordReading& reading) override { differs_ = differs_ || !reading.all_equal; }

  static constexpr int kLooks = 8;

  GatheredBackwards own_;
  int looks_ = 0;
  bool differs_ = false;
  bool said_ = false;
};

const AddAdvice add_uneven_micro_batches("uneven_micro_batches", [] { return std::make_unique<UnevenMicroBatches>(); });

}  // namespace
}  // namespace brigade::dist
