// The kinds of warnings on the batches of the ranks.
#include <brigade/autograd/meta.h>
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/errors/wire.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace brigade::dist {

// batch_skipped: a forward threw on one rank, which went on with its next batch, while the others did not.
//
// Severity: warning
// When: end of backward
// Causes: `exception`

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BegunForwards, lines, error, where)

namespace {

// Ranks that agree to leave out a batch have begun as many forwards at the line as the others.
std::optional<Verdict> batch_skipped(std::vector<BegunForwards> by_rank, const Moment& moment) {
  const auto threw = std::ranges::find_if(by_rank, [](const BegunForwards& each) { return !each.error.empty(); });
  if (threw == by_rank.end()) return std::nullopt;
  const int rank = static_cast<int>(threw - by_rank.begin());
  std::vector<int> behind;
  for (size_t r = 0; r < by_rank.size(); ++r)
    if (by_rank[r].at(threw->where) < threw->at(threw->where)) behind.push_back(static_cast<int>(r));
  if (behind.empty()) return std::nullopt;
  Verdict verdict = verdict_at(moment, "batch_skipped", Severity::Warning, CauseKind::Exception);
  verdict.ranks = {rank};
  verdict.cause.place = place_of(threw->where);
  verdict.cause.text = fmt::format(
      "its forward at {} threw \"{}\", which the program caught; from here on, gradients of different batches are averaged",
      in_words(threw->where), threw->error);
  verdict.advice =
      "let all ranks skip together (all_reduce whether one has failed, before backward), run the same batch again, or let "
      "the exception end the job";
  set_message(verdict, fmt::format("Rank {} skipped a batch and {} did not, in backward {} at {}", rank,
                                   ranks_in_words(behind), moment.iteration, to_string(moment.where)));
  return verdict;
}

}  // namespace

// same_batches: all ranks compute the same gradients, so additional ranks do not help.
//
// Severity: warning
// When: end of backward
// Causes: `same_batches`: six backwards in a row

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

// uneven_batches: the ranks average their gradients over different numbers of samples.
//
// Severity: warning
// When: end of backward
// Causes: `uneven_batches`

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
    const auto rows = decoded_of_all<int64_t>(backward.exchange(to_text(rows_), "batch sizes"));
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

// uneven_micro_batches: the ranks accumulated different numbers of backwards in a reduced gradient.
//
// Severity: warning
// When: end of backward
// Causes: `uneven_batches`

// The number of backwards in one rank's gradients, and those of them kept from earlier reductions.
struct GatheredBackwards {
  int64_t count = 0;
  KeptBackwards kept;
  double share = 0;           // the factor of its loss, times `count`
  int64_t samples = 0;        // of its batch, times `count`; 0 if not known
  bool adds_samples = false;  // a sum over samples, which the program divides by what it likes
  BegunForwards forwards;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KeptBackwards, count, at)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GatheredBackwards, count, kept, share, samples, adds_samples, forwards)

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

// Whether the losses make up for it: each is a sum, or divided by the number of its rank, which splits as many samples.
bool are_meant(std::span<const GatheredBackwards> by_rank) {
  const GatheredBackwards& first = by_rank.front();
  return std::ranges::all_of(by_rank, [&](const GatheredBackwards& each) {
    const bool is_split = each.samples > 0 && each.samples == first.samples &&
                          std::abs(each.share - first.share) <= 1e-6 * std::abs(first.share);
    return each.kept.count == 0 && (each.adds_samples || is_split);
  });
}

// Batches that were skipped are found by the same exchange: one number for both.
class UnevenMicroBatches final : public Advice, private Statistic {
 public:
  Statistic* statistic() override { return this; }
  std::optional<Verdict> examine(FinishedBackward& backward) override {
    if (!differs_ || (said_ && said_skipped_) || looks_++ >= kLooks) return std::nullopt;
    const auto by_rank =
        decoded_of_all<GatheredBackwards>(backward.exchange(to_text(own_), "numbers of micro-batches"));
    std::vector<BegunForwards> forwards;
    for (const GatheredBackwards& each : by_rank)
      forwards.push_back(each.forwards);
    if (auto skipped = batch_skipped(std::move(forwards), backward.moment()); skipped && !said_skipped_) {
      said_skipped_ = true;
      return skipped;
    }
    const auto odd = std::ranges::adjacent_find(by_rank, std::ranges::not_equal_to(), &GatheredBackwards::count);
    if (said_ || odd == by_rank.end() || are_meant(by_rank)) return std::nullopt;
    said_ = true;
    return uneven_micro_batches(by_rank, backward.moment());
  }

 private:
  Kind kind() const override { return Kind::Number; }
  void begin(const StartedBackward& backward) override {
    own_.count = backward.gathered;
    own_.kept = backward.kept;
    own_.share = backward.loss.factor * static_cast<double>(backward.gathered);
    own_.samples = backward.rows * backward.gathered;
    own_.adds_samples = backward.loss.adds_samples;
    if (backward.forwards) own_.forwards = *backward.forwards;
    differs_ = false;
  }
  uint64_t value() override {
    return static_cast<uint64_t>(own_.count) + (own_.forwards.error.empty() ? 0 : uint64_t{1} << (kNumberBits - 1));
  }
  void read(const WordReading& reading) override { differs_ = differs_ || !reading.all_equal; }

  static constexpr int kLooks = 8;

  GatheredBackwards own_;
  int looks_ = 0;
  bool differs_ = false;
  bool said_ = false, said_skipped_ = false;
};

const AddAdvice add_uneven_micro_batches("uneven_micro_batches", [] { return std::make_unique<UnevenMicroBatches>(); });

}  // namespace

}  // namespace brigade::dist
