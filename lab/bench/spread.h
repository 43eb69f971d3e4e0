// Statistics of samples: the median, the spread, and how far the median can be trusted.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <vector>

namespace brigade::lab::bench {

// samples[r]: the samples of rank r, one per round.
using Samples = std::vector<std::vector<double>>;

// Statistics over all samples of all ranks. Quantiles are interpolated between neighbors (type 7 of Hyndman and
// Fan, 1996, as NumPy and R compute). All 0 when there is no sample.
struct Spread {
  double median = 0, min = 0, max = 0;
  double low = 0, high = 0;  // the quartiles
  int64_t n = 0;
  double noise = 0;  // see noise_of(); the largest over ranks
};
Spread spread_of(const Samples& samples);
// STAT of docs/cli.md: {"median", "min", "max", "low", "high", "n", "noise"}
nlohmann::json to_json(const Spread& spread);

// How far the median of one rank's samples may be from that of infinitely many rounds, relative to the median: 1.57
// times the interquartile range, divided by the square root of the number of samples and by the median (half the
// notch of a box plot, about 95 %: McGill, Tukey, Larsen, "Variations of box plots", 1978). More rounds make it
// smaller. Infinite for fewer than 3 samples and for a median of 0.
double noise_of(const std::vector<double>& samples);

// a / b, round by round on each rank. Rounds that only one of them has are left out.
Samples ratios(const Samples& a, const Samples& b);

// The sum of all samples of all ranks.
double total(const Samples& samples);

// The quantile of sorted values; `part` is from 0 to 1.
double quantile(const std::vector<double>& sorted, double part);

}  // namespace brigade::lab::bench
