// Interpolated quantiles, and the notch of a box plot as the noise of a median.
#include <brigade/lab/bench/spread.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace brigade::lab::bench {

double quantile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

double noise_of(const std::vector<double>& samples) {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const double median = quantile(sorted, 0.5);
  if (sorted.size() < 3 || median == 0) return std::numeric_limits<double>::infinity();
  const double width = quantile(sorted, 0.75) - quantile(sorted, 0.25);
  return 1.57 * width / std::sqrt(static_cast<double>(sorted.size())) / std::abs(median);
}

Spread spread_of(const Samples& samples) {
  std::vector<double> all;
  double noise = 0;
  for (const std::vector<double>& of_rank : samples) {
    all.insert(all.end(), of_rank.begin(), of_rank.end());
    noise = std::max(noise, noise_of(of_rank));
  }
  if (all.empty()) return {};
  std::sort(all.begin(), all.end());
  return {.median = quantile(all, 0.5),
          .min = all.front(),
          .max = all.back(),
          .low = quantile(all, 0.25),
          .high = quantile(all, 0.75),
          .n = static_cast<int64_t>(all.size()),
          .noise = noise};
}

nlohmann::json to_json(const Spread& spread) {
  nlohmann::json stat{{"median", spread.median}, {"min", spread.min}, {"max", spread.max}, {"low", spread.low},
                      {"high", spread.high},     {"n", spread.n},     {"noise", nullptr}};
  if (std::isfinite(spread.noise)) stat["noise"] = spread.noise;
  return stat;
}

Samples ratios(const Samples& a, const Samples& b) {
  Samples all(std::min(a.size(), b.size()));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    for (size_t round = 0; round < std::min(a[rank].size(), b[rank].size()); ++round)
      all[rank].push_back(a[rank][round] / b[rank][round]);
  }
  return all;
}

double total(const Samples& samples) {
  double sum = 0;
  for (const std::vector<double>& rank : samples)
    sum = std::accumulate(rank.begin(), rank.end(), sum);
  return sum;
}

}  // namespace brigade::lab::bench
