// Finds the bucket size with the least cost per byte, and the terms that make the other sizes cost more.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace brigade::lab::bench {

inline constexpr double kMebibyte = 1 << 20;

// The cost of a bucket of one size.
struct BucketCost {
  int64_t bytes = 0;
  std::vector<std::pair<std::string, double>> terms_us;  // the same terms in the same order for all sizes
};

struct Optimum {
  int64_t bytes = 0;
  double us_per_mib = 0;
  // The contiguous range of sizes around the optimum that cost at most 1.1 times as much, which is within the noise
  // of a shared machine.
  int64_t from_bytes = 0;
  int64_t to_bytes = 0;
  std::string largest;       // its largest term
  double largest_share = 0;  // of its cost
  // The term whose cost per byte grows most from the optimum to the smallest and to the largest size; "" where the
  // optimum is that size.
  std::string smaller_pay, larger_pay;
};

// `costs` are sorted by size. Throws ValueError when there are none, or when one has no bytes.
Optimum find_optimum(std::span<const BucketCost> costs);

// "least at 4 MiB (310 us/MiB, 62 % reduce; 1 MiB to 16 MiB within 10 %); smaller ones pay flags,
// larger ones reduce"
std::string in_words(const Optimum& optimum);

}  // namespace brigade::lab::bench
