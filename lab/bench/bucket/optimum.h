// Which bucket size costs least per byte, and which term makes the others cost more.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace brigade::lab::bench {

inline constexpr double kMebibyte = 1 << 20;

// What a bucket of one size costs.
struct BucketCost {
  int64_t bytes = 0;
  std::vector<std::pair<std::string, double>> terms_us;  // the same terms in the same order for all sizes
};

struct Optimum {
  int64_t bytes = 0;
  double us_per_mib = 0;
  // Sizes beside it, without a gap, that cost at most 1.1 times as much: within what a shared
  // machine repeats.
  int64_t from_bytes = 0;
  int64_t to_bytes = 0;
  std::string largest;       // its largest term
  double largest_share = 0;  // of its cost
  // Per byte, the term that grows most from the optimum to the smallest and to the largest size;
  // "" where the optimum is that size.
  std::string smaller_pay, larger_pay;
};

// `costs`: by growing size. Throws ValueError when there is none, or one of no bytes.
Optimum find_optimum(std::span<const BucketCost> costs);

// "least at 4 MiB (310 us/MiB, 62 % reduce; 1 MiB to 16 MiB within 10 %); smaller ones pay flags,
// larger ones reduce"
std::string in_words(const Optimum& optimum);

}  // namespace brigade::lab::bench
