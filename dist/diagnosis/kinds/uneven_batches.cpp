// uneven_batches: the ranks average their gradients over different numbers of samples.
//
// Severity: warning
// When: end of backward
// Causes: `uneven_batches`
#include <brigade/autograd/meta.h>
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/errors/wire.h>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace brigade::dist {
namespace {

// Whether the loss is a plain mean over the samples of the batch. A loss that was divided by tokens, or scaled by the
// batch size, is taken as intended.
bool averages_over(const autograd::Plan& plan, int64_t rows) {
  static constexpr std::string_view kMeans[] = {"mean",
                                                "mse_loss",
                                                "l1_loss",
                                                "smooth_l1_loss",
                                                "huber_loss",
                                                "binary_cross_entropy",
                                                "binary_cross_entropy_with_logits",
                                                "cross_entropy",
                                                "nll_loss"};
  if (plan.roots().size() != 1 || rows == 0) return false;
  const autograd::Node* node = autograd::grad_fn(plan.roots().front());
  if (!node || node->edges.empty() || node->adds_samples || std::ranges::find(kMeans, node->op) == std::end(kMeans))
    return false;
  const autograd::Edge& edge = node->edges[0];
  if (!edge.defined()) return false;
  const Shape& sizes = edge.node ? edge.node->outputs[edge.output].sizes : edge.leaf->sizes;
  return sizes.numel() % rows == 0;
}

// `rows`: samples in each rank's batch.
Verdict uneven_batches(std::span<const int64_t> rows, const Moment& moment) {
  Verdict verdict = verdict_at(moment, "uneven_batches", Severity::Warning, CauseKind::UnevenBatches);
  double total = 0;
  for (const int64_t each : rows)
    total += static_cast<double>(each);
  std::vector<std::string> samples, shares;
  for (size_t r = 0; r < rows.size(); ++r) {
    verdict.ranks.push_back(static_cast<int>(r));
    const auto own = static_cast<double>(rows[r]);
    samples.push_back(fmt::format("has {} sample{}", rows[r], rows[r] == 1 ? "" : "s"));
    const double share = own > 0 ? total / static_cast<double>(rows.size()) / own : 0;
    shares.push_back(fmt::format("has a weight of {:.3g}", share));
  }
  verdict.cause.text = "the losses are means, so samples do not count alike: " + by_rank_in_words(shares);
  verdict.advice =
      "give every rank as many samples (DistributedSampler), or scale its loss by its samples x ranks / all samples";
  set_message(verdict, fmt::format("Batches of different sizes in backward {} at {}: {}", moment.iteration,
                                   to_string(moment.where), by_rank_in_words(samples)));
  return verdict;
}

class UnevenBatches final : public Advice, private Statistic {
 public:
  Statistic* statistic() override { return this; }
  std::optional<Verdict> examine(FinishedBackward& backward) override {
    if (!differs_ || said_ || looks_++ >= kLooks) return std::nullopt;
    std::vector<int64_t> rows;
    for (const std::string& of_rank : backward.exchange(to_text(rows_), "batch sizes"))
      rows.push_back(decoded<int64_t>(of_rank));
    // 0: unknown, since the loss is not a plain mean over the batch.
    if (std::find(rows.begin(), rows.end(), 0) != rows.end()) return std::nullopt;
    said_ = std::any_of(rows.begin(), rows.end(), [&](int64_t each) { return each != rows.front(); });
    return said_ ? std::optional(uneven_batches(rows, backward.moment())) : std::nullopt;
  }

 private:
  Kind kind() const override { return Kind::Measure; }
  void begin(const StartedBackward& backward) override {
    rows_ = !backward.plan || averages_over(*backward.plan, backward.rows) ? backward.rows : 0;
    differs_ = false;
  }
  uint64_t value() override { return static_cast<uint64_t>(rows_); }
  void read(const WordReading& reading) override {
    const bool differ = reading.ranks > 1 && reading.variance > 1e-3 * reading.mean * reading.mean;
    differs_ = differs_ || (reading.all_have_gradients && differ);
  }

  static constexpr int kLooks = 8;

  int64_t rows_ = 0;
  bool differs_ = false;
  int looks_ = 0;
  bool said_ = false;
};

const AddAdvice add_uneven_batches("uneven_batches", [] { return std::make_unique<UnevenBatches>(); });

}  // namespace
}  // namespace brigade::dist
