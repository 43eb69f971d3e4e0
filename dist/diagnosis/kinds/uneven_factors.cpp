// uneven_factors: the ranks multiply the same loss by different numbers.
//
// Severity: warning
// When: end of backward
// Causes: `wrong_scale`: four backwards in a row with the same numbers
#include <brigade/autograd/detail/findings.h>
#include <brigade/autograd/meta.h>
#include <brigade/core/fnv.h>
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/errors/majority.h>
#include <brigade/dist/errors/wire.h>

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <string_view>

namespace brigade::dist {

LossCore core_of(const autograd::Plan* plan) {
  LossCore found;
  if (!plan || plan->roots().size() != 1) return found;
  const autograd::Node* node = autograd::grad_fn(plan->roots().front());
  while (node && !node->edges.empty()) {
    const std::optional<double> number = autograd::detail::number_factor(*node);
    if (!number && std::string_view(node->op) != "amp_scale") break;
    if (number && *number != 1 && found.at.line() == 0) found.at = node->where;
    found.factor *= number.value_or(1);
    node = node->edges[0].node.get();
  }
  if (!node) return found;
  found.of = node->op;
  found.of_at = node->where;
  found.adds_samples = node->adds_samples || std::string_view(node->op) == "sum";
  return found;
}

namespace {

// The numbers that a rank's loss was last multiplied by, and the operation before them.
struct LossFactor {
  double factor = 1;
  Place at;        // of the latest multiplication; no line: there was none
  std::string of;  // the operation that made the multiplied tensor
  Place of_at;
  int64_t rows = 0;  // samples in the batch, 0 when not known
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LossFactor, factor, at, of, of_at, rows)

std::string in_words(const LossFactor& each) {
  return each.at ? fmt::format("by {:.4g} at {}", each.factor, to_string(each.at)) : "by no number";
}

Verdict uneven_factors(std::span<const LossFactor> by_rank, int backwards, const Moment& moment) {
  Verdict verdict = verdict_at(moment, "uneven_factors", Severity::Warning, CauseKind::WrongScale);
  const auto alike = [](const LossFactor& a, const LossFactor& b) { return a.factor == b.factor; };
  const std::vector<int> odd = odd_ranks(by_rank, alike);
  verdict.ranks = outvoted(odd, by_rank.size());
  const size_t usual = usual_rank(by_rank, alike);
  const LossFactor& other = by_rank[static_cast<size_t>(odd.front())];
  std::vector<std::string> factors;
  for (const LossFactor& each : by_rank)
    factors.push_back(in_words(each));
  verdict.cause.op = other.of;
  verdict.cause.place = other.at ? other.at : by_rank[usual].at;
  verdict.cause.text = fmt::format(
      "the gradients of rank {} count {:.4g} times those of rank {}, in {} backwards in a row (the loss is the result of {} "
      "at {})",
      odd.front(), std::abs(other.factor / by_rank[usual].factor), usual, backwards, other.of, to_string(other.of_at));
  verdict.advice = "scale the loss alike on every rank, or, on purpose, multiply it by a tensor";
  set_message(verdict, fmt::format("The ranks multiply the loss by different numbers in backward {}: {}",
                                   moment.iteration, by_rank_in_words(factors)));
  return verdict;
}

// Whether the factors look like a mistake. They do not if a rank that ran out of data sends 0, if they are weights by
// tokens or samples (which add up to the number of ranks), or if the losses are not the same.
bool is_odd(std::span<const LossFactor> by_rank) {
  const LossFactor& first = by_rank.front();
  double sum = 0;
  for (const LossFactor& each : by_rank) {
    if (each.factor == 0 || !std::isfinite(each.factor) || each.of != first.of || each.of_at != first.of_at ||
        each.rows != first.rows)
      return false;
    sum += each.factor;
  }
  return std::abs(sum - static_cast<double>(by_rank.size())) > 1e-6 * static_cast<double>(by_rank.size());
}

class UnevenFactors final : public Advice, private Statistic {
 public:
  Statistic* statistic() override { return this; }
  std::optional<Verdict> examine(FinishedBackward& backward) override {
    if (!differs_ || said_ || looks_++ >= kLooks) return std::nullopt;
    const LossFactor own{loss_.factor, loss_.at, loss_.of, loss_.of_at, rows_};
    const auto by_rank = decoded_of_all<LossFactor>(backward.exchange(to_text(own), "factors of the losses"));
    std::vector<double> factors;
    for (const LossFactor& each : by_rank)
      factors.push_back(each.factor);
    const bool again = factors == latest_ && backward.moment().iteration == latest_at_ + 1;
    in_a_row_ = !is_odd(by_rank) ? 0 : again ? in_a_row_ + 1 : 1;
    latest_ = std::move(factors);
    latest_at_ = backward.moment().iteration;
    said_ = in_a_row_ == kInARow;
    return said_ ? std::optional(uneven_factors(by_rank, kInARow, backward.moment())) : std::nullopt;
  }

 private:
  Kind kind() const override { return Kind::Number; }
  void begin(const StartedBackward& backward) override {
    loss_ = backward.loss;
    rows_ = backward.rows;
    // If the numbers of two factors are equal in one backward, they differ in the next.
    number_ = mix(mix(std::bit_cast<uint64_t>(loss_.factor)) + backward.number);
    differs_ = false;
  }
  uint64_t value() override { return number_; }
  void read(const WordReading& reading) override {
    differs_ = differs_ || (reading.all_have_gradients && !reading.all_equal);
  }

  static constexpr int kInARow = 4;
  static constexpr int kLooks = 32;

  LossCore loss_;
  int64_t rows_ = 0;
  uint64_t number_ = 0;
  bool differs_ = false;
  std::vector<double> latest_;
  uint64_t latest_at_ = 0;
  int in_a_row_ = 0;
  int looks_ = 0;
  bool said_ = false;
};

const AddAdvice add_uneven_factors("uneven_factors", [] { return std::make_unique<UnevenFactors>(); });

}  // namespace
}  // namespace brigade::dist
