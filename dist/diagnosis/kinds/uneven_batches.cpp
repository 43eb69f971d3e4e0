// uneven_batches: the ranks average their gradients over different numbers of samples.
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

std::optional<Verdict> uneven_batches(std::span<const int64_t> rows, const Moment& moment) {
  if (std::all_of(rows.begin(), rows.end(), [&](int64_t each) { return each == rows.front(); })) return std::nullopt;
  Verdict verdict = verdict_at(moment, "uneven_batches", Severity::Warning, CauseKind::UnevenBatches);
  double total = 0;
  for (const int64_t each : rows)
    total += static_cast<double>(each);
  std::string list;
  for (size_t r = 0; r < rows.size(); ++r) {
    verdict.ranks.push_back(static_cast<int>(r));
    const auto own = static_cast<double>(rows[r]);
    list += fmt::format("{}rank {}: {} samples (each counts {:.3g} times its share)", r > 0 ? ", " : "", r, rows[r],
                        own > 0 ? total / static_cast<double>(rows.size()) / own : 0.0);
  }
  verdict.cause.text = fmt::format(
      "the ranks average their gradients over batches of different sizes in backward {}: {}", moment.iteration, list);
  verdict.message = verdict.cause.text + "; where each rank's loss is a mean, the mean of means is not the mean of all";
  verdict.advice =
      "give every rank the same number of samples (DistributedSampler), or scale each rank's loss by its samples x "
      "ranks / all samples";
  return verdict;
}

}  // namespace brigade::dist
