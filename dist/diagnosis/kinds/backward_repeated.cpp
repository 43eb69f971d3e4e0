// backward_repeated: two backwards in a row came from the same loss, and their gradients were added.
//
// Severity: warning
// When: end of backward
// Causes: `not_cleared`
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/errors/json.h>

#include <fmt/format.h>

#include <utility>

namespace brigade::dist {
namespace {

Verdict backward_repeated(std::vector<int> ranks, Place first, const Moment& moment) {
  Verdict verdict = verdict_at(moment, "backward_repeated", Severity::Warning, CauseKind::NotCleared);
  verdict.ranks = std::move(ranks);
  verdict.cause.text =
      "its gradients were neither cleared nor used by a step in between, so they are twice too large: the first was at " +
      to_string(first);
  verdict.advice = "call backward() once for each loss, or zero_grad() in between";
  set_message(verdict, fmt::format("The same loss went backward twice on {}, the second time in backward {} at {}",
                                   ranks_in_words(verdict.ranks), moment.iteration, to_string(moment.where)));
  return verdict;
}

class BackwardRepeated final : public Advice, private Statistic {
 public:
  Statistic* statistic() override { return this; }
  std::optional<Verdict> examine(FinishedBackward& backward) override {
    const Place first = std::exchange(latest_at_, backward.moment().where);
    if (!any_ || said_) return std::nullopt;
    said_ = true;
    const std::vector<std::string> answers = backward.exchange(to_text(repeats_), "whether a loss was repeated");
    std::vector<int> ranks;
    for (size_t r = 0; r < answers.size(); ++r)
      if (decoded<bool>(answers[r])) ranks.push_back(static_cast<int>(r));
    return backward_repeated(std::move(ranks), first, backward.moment());
  }

 private:
  Kind kind() const override { return Kind::Measure; }
  void begin(const StartedBackward& backward) override {
    std::vector<uint64_t> roots;
    if (backward.plan)
      for (const Tensor& root : backward.plan->roots())
        roots.push_back(root.id());
    repeats_ = !roots.empty() && roots == roots_ && backward.adds;
    roots_ = std::move(roots);
    any_ = false;
  }
  uint64_t value() override { return repeats_ ? 1 : 0; }
  void read(const WordReading& reading) override { any_ = any_ || reading.mean > 0; }

  std::vector<uint64_t> roots_;  // ids of what the latest backward started from
  Place latest_at_;              // that backward
  bool repeats_ = false;         // on this rank
  bool any_ = false;             // on any
  bool said_ = false;
};

const AddAdvice add_backward_repeated("backward_repeated", [] { return std::make_unique<BackwardRepeated>(); });

}  // namespace
}  // namespace brigade::dist
