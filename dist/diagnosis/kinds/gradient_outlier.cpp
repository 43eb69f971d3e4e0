// gradient_outlier: one rank's gradients differ widely in norm from those of the other ranks.
//
// Severity: warning
// When: end of backward
// Causes: `hook_differs`: at once if a hook that changed a gradient is not on every rank, or after three backwards in a
//   row in which one rank's hook zeroed a gradient; `norm_outlier`: after six backwards in a row in which the same
//   rank's gradients differ from the others' by a factor of at least 22
#include <brigade/autograd/meta.h>
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/diagnosis/outlier.h>
#include <brigade/dist/errors/wire.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace brigade::dist {
namespace {

// log2 below which a rank's gradients are noise.
double noise_of(const std::vector<GradientSize>& sizes) {
  double all = 0;
  for (const GradientSize& size : sizes)
    all += std::exp2(size.log2);
  return std::log2(all) - 33;
}

struct Far {
  int rank = 0;
  double offset = 0;  // from the middle; below 0: it is smaller
  std::vector<int> others;
};

// The rank farthest from the middle; with two ranks the larger one.
Far farthest(std::vector<std::pair<double, int>> sizes) {
  std::sort(sizes.begin(), sizes.end());
  const double middle = sizes.size() == 2 ? sizes.front().first : sizes[sizes.size() / 2].first;
  const auto& far =
      std::abs(sizes.front().first - middle) > std::abs(sizes.back().first - middle) ? sizes.front() : sizes.back();
  Far found{.rank = far.second, .offset = far.first - middle, .others = {}};
  for (const auto& [size, rank] : sizes) {
    if (rank != far.second) found.others.push_back(rank);
  }
  std::sort(found.others.begin(), found.others.end());
  return found;
}

}  // namespace

Outlier find_outlier(std::span<const std::vector<GradientSize>> by_rank) {
  std::vector<double> noise;
  for (const std::vector<GradientSize>& sizes : by_rank)
    noise.push_back(noise_of(sizes));
  Outlier found;
  for (uint32_t i = 0; i < by_rank.front().size(); ++i) {
    std::vector<std::pair<double, int>> sizes;
    bool is_noise = false;
    for (size_t r = 0; r < by_rank.size(); ++r) {
      const GradientSize& size = by_rank[r][i];
      if (!size.is_there()) continue;
      sizes.emplace_back(size.log2, static_cast<int>(r));
      is_noise = is_noise || size.log2 < noise[r];
    }
    if (sizes.size() < 2 || is_noise) continue;
    const Far far = farthest(sizes);
    if (std::abs(far.offset) < 9) continue;
    found.parameters.push_back({i, far.rank, far.others});
    if (std::find(found.ranks.begin(), found.ranks.end(), far.rank) == found.ranks.end())
      found.ranks.push_back(far.rank);
    if (std::abs(far.offset) <= std::abs(found.offset)) continue;
    found.offset = far.offset;
    found.hook = by_rank[static_cast<size_t>(far.rank)][i].hook;
    found.hooks_differ = std::any_of(sizes.begin(), sizes.end(), [&](const auto& size_and_rank) {
      return by_rank[static_cast<size_t>(size_and_rank.second)][i].hook != found.hook;
    });
  }
  return found;
}

bool OutlierStreak::add(const Outlier& found) {
  backwards_ = found.ranks == ranks_ ? backwards_ + 1 : 1;
  ranks_ = found.ranks;
  return backwards_ >= kBackwards;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GradientSize, log2, hook)

namespace {

Verdict gradient_outlier(const Outlier& found, std::span<const NamedParameter> parameters, const Moment& moment) {
  Verdict verdict = verdict_at(moment, "gradient_outlier", Severity::Warning, CauseKind::NormOutlier);
  verdict.ranks = found.ranks;
  for (const Outlier::Parameter& each : found.parameters)
    verdict.parameters.push_back(about(parameters[each.position], each.others, {each.rank}));
  const bool is_hook = found.hooks_differ && found.hook;
  verdict.cause.text = is_hook ? "a gradient hook is registered there at " + to_string(found.hook)
                               : fmt::format("it was so in {} backwards in a row", OutlierStreak::kBackwards);
  verdict.advice =
      "look for a loss that is summed instead of averaged, other data, or another learning-rate scale there";
  if (is_hook) {
    verdict.cause.kind = CauseKind::HookDiffers;
    verdict.cause.place = found.hook;
    verdict.advice = "register the same gradient hooks on every rank, or none";
  }
  set_message(
      verdict,
      fmt::format("Gradient {:.3g} times that of the other ranks: {}, on {}, before the reduction in backward {} "
                  "at {}",
                  std::exp2(found.offset / 2), names_in_words(verdict.parameters), ranks_in_words(verdict.ranks),
                  moment.iteration, to_string(moment.where)));
  return verdict;
}

// Reports at once if a gradient hook is not on every rank; otherwise the same ranks must stand out in several
// backwards in a row.
class GradientOutlier final : public Advice {
 public:
  std::optional<Verdict> examine(FinishedBackward& backward) override {
    if (!backward.measured().outlier) {
      streak_.end();
      return std::nullopt;
    }
    if (said_ || looks_++ >= kLooks) return std::nullopt;
    const std::vector<std::vector<GradientSize>> sizes = sizes_of_all(backward);
    if (sizes.empty()) return std::nullopt;
    const Outlier found = find_outlier(sizes);
    const bool is_long = streak_.add(found);
    if (found.parameters.empty() || (!found.hooks_differ && !is_long)) return std::nullopt;
    said_ = true;
    return gradient_outlier(found, backward.parameters(), backward.moment_of_numbers());
  }

 private:
  // Finding the ranks takes an exchange: limited, since sound training may be uneven too.
  static constexpr int kLooks = 64;

  // The latest hook that changed a gradient.
  static Place changing_hook(const autograd::AutogradMeta& meta) {
    const auto latest =
        std::find_if(meta.hooks.rbegin(), meta.hooks.rend(), [](const auto& hook) { return hook.has_changed; });
    return latest != meta.hooks.rend() ? Place(latest->where) : Place();
  }

  // By rank, one entry per parameter. Empty if the ranks have different numbers of parameters.
  static std::vector<std::vector<GradientSize>> sizes_of_all(FinishedBackward& backward) {
    const std::span<const NamedParameter> parameters = backward.parameters();
    std::vector<GradientSize> mine;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const autograd::AutogradMeta* meta = autograd::meta(parameters[i].tensor);
      const double sum = backward.sums_of_squares()[i];
      mine.push_back({sum > 0 && std::isfinite(sum) ? std::log2(sum) : GradientSize::kNone,
                      meta ? changing_hook(*meta) : Place()});
    }
    std::vector<std::vector<GradientSize>> by_rank;
    for (const std::string& of_rank : backward.exchange(to_text(mine), "sizes of gradients")) {
      by_rank.push_back(decoded<std::vector<GradientSize>>(of_rank));
      if (by_rank.back().size() != parameters.size()) return {};
    }
    return by_rank;
  }

  OutlierStreak streak_;
  int looks_ = 0;
  bool said_ = false;
};

const AddAdvice add_gradient_outlier("gradient_outlier", [] { return std::make_unique<GradientOutlier>(); });

}  // namespace

Verdict gradient_emptied(const NamedParameter& parameter, SourceLocation hook, int rank, int backwards,
                         const Moment& moment) {
  Verdict verdict = verdict_at(moment, "gradient_outlier", Severity::Warning, CauseKind::HookDiffers);
  verdict.ranks = {rank};
  verdict.parameters.push_back(about(parameter, {}, {rank}));
  verdict.cause.place = hook;
  verdict.cause.text = "the gradient hook that is registered at " + to_string(hook) + " made zero of it";
  verdict.advice =
      "register the same gradient hooks on every rank, or none; freeze by requires_grad_(false) before wrapping";
  set_message(verdict,
              fmt::format("Gradient zero on one rank only: {}, on rank {}, before the reduction in backward {} "
                          "(at {}) as in the {} before",
                          parameter.name, rank, moment.iteration, to_string(moment.where), backwards - 1));
  return verdict;
}

}  // namespace brigade::dist
