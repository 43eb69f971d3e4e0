// Statistics of samples: where the middle is, how wide they lie, and how far the median can be trusted.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <vector>

namespace brigade::lab::bench {

// samples[r]: those of rank r, one a round.
using Samples = std::vector<std::vector<double>>;

// Of all samples of all ranks. Quantiles lie between neighbours in proportion (type 7 of Hyndman and
// Fan, 1996: what NumPy and R compute). All 0 where there is no sample.
struct Spread {
  double median = 0, min = 0, max = 0;
  double low = 0, high = 0;  // the quartiles
  int64_t n = 0;
  double noise = 0;  // see below; the largest of a rank
};
Spread spread_of(const Samples& samples);
// STAT of docs/cli.md: {"median", "min", "max", "low", "high", "n", "noise"}
nlohmann::json to_json(const Spread& spread);

// How far the median of samples of one rank may lie from that of endless rounds, as a part of it:
// 1.57 times the width between the quartiles, by the square root of their number and by the median
// (half the notch of a box plot, about 95 %: McGill, Tukey, Larsen, "Variations of box plots", 1978).
// More rounds make it smaller. Infinite for fewer than 3 samples and for a median of 0.
double noise_of(const std::vector<double>& samples);

// a / b, round by round on each rank; rounds that only one of them has are left out.
Samples ratios(const Samples& a, const Samples& b);

// The sum of all samples of all ranks.
double total(const Samples& samples);

// Of sorted values; `part` from 0 to 1.
double quantile(const std::vector<double>& sorted, double part);

}  // namespace brigade::lab::bench
