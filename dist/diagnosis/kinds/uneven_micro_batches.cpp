// uneven_micro_batches: a reduced gradient holds more backwards of some ranks than of others.
//
// Severity: warning
// When: end of backward
// Causes: `uneven_batches`
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/diagnosis/wire.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

namespace {

// `gathered`: the backwards of each rank.
Verdict uneven_micro_batches(std::span<const int64_t> gathered, const Moment& moment) {
  Verdict verdict = verdict_at(moment, "uneven_micro_batches", Severity::Warning, CauseKind::UnevenBatches);
  std::string list;
  for (size_t r = 0; r < gathered.size(); ++r) {
    if (std::count(gathered.begin(), gathered.end(), gathered[r]) * 2 <= static_cast<std::ptrdiff_t>(gathered.size()))
      verdict.ranks.push_back(static_cast<int>(r));
    list += fmt::format("{}rank {}: {}", r > 0 ? ", " : "", r, gathered[r]);
  }
  verdict.cause.text = fmt::format(
      "the gradients that were averaged in backward {} hold the backwards of different numbers of micro-batches: {}",
      moment.iteration, list);
  verdict.message =
      verdict.cause.text +
      "; so they do not count alike (a rank with more of them counts for more, or each of them for less where "
      "each rank divides by its own number), and the data of that rank ends earlier";
  verdict.advice =
      "run as many backwards under no_sync on every rank before the one that reduces (the same accumulation steps, and "
      "a DistributedSampler with drop_last), and clear gradients only before the first of them; where data ends unevenly on purpose, train inside join()";
  return verdict;
}

class UnevenMicroBatches final : public Advice {
 public:
  std::optional<Verdict> examine(FinishedBackward& backward) override {
    if (!backward.outcome().uneven_gathered || said_) return std::nullopt;
    std::vector<int64_t> gathered;
    for (const std::string& of_rank : backward.exchange(to_text(backward.gathered()), "numbers of micro-batches"))
      gathered.push_back(decoded<int64_t>(of_rank));
    said_ = true;
    return uneven_micro_batches(gathered, backward.moment());
  }

 private:
  bool said_ = false;
};

const AddAdvice add_uneven_micro_batches("uneven_micro_batches", [] { return std::make_unique<UnevenMicroBatches>(); });

}  // namespace

}  // namespace brigade::dist
