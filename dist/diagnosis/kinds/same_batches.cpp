// same_batches: all ranks compute the same gradients, so additional ranks do not help.
//
// Severity: warning
// When: end of backward
// Causes: `same_batches`: six backwards in a row
#include <brigade/dist/diagnosis/advice.h>

#include <fmt/format.h>

namespace brigade::dist {
namespace {

Verdict same_batches(int backwards, const Moment& moment) {
  Verdict verdict = verdict_at(moment, "same_batches", Severity::Warning, CauseKind::SameBatches);
  verdict.ranks = moment.every_rank();
  verdict.cause.text = "before they were averaged, their gradients were the same to the last bit";
  verdict.advice = "give each rank its own part of the data (DistributedSampler), or a seed of its own";
  set_message(verdict,
              fmt::format("All {} ranks train on the same data, in {} backwards in a row up to number {} at {}",
                          moment.ranks, backwards, moment.iteration, to_string(moment.where)));
  return verdict;
}

class SameBatches final : public Advice {
 public:
  std::optional<Verdict> examine(FinishedBackward& backward) override {
    if (said_) return std::nullopt;
    // NaN gradients look alike whatever produced them, so they do not count.
    const bool is_finite = backward.measured().non_finite == 0;
    in_a_row_ = is_finite && backward.measured().alike == backward.buckets() ? in_a_row_ + 1 : 0;
    said_ = in_a_row_ == kInARow;
    return said_ ? std::optional(same_batches(kInARow, backward.moment())) : std::nullopt;
  }

 private:
  static constexpr int kInARow = 6;

  int in_a_row_ = 0;
  bool said_ = false;
};

const AddAdvice add_same_batches("same_batches", [] { return std::make_unique<SameBatches>(); });

}  // namespace
}  // namespace brigade::dist
