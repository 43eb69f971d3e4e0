// The lengths of a random split: counts or fractions.
#include <brigade/data/subset.h>

#include <brigade/data/sampler.h>

#include <cmath>
#include <numeric>

namespace brigade::data::detail {
namespace {

std::vector<int64_t> counts_of(int64_t size, const std::vector<double>& lengths) {
  double sum = 0;
  for (const double length : lengths) {
    if (!(length >= 0)) throw ValueError("random_split: expected lengths of at least 0, got {}", length);
    sum += length;
  }
  const bool are_fractions = std::abs(sum - 1) <= 1e-9;
  std::vector<int64_t> counts;
  for (const double length : lengths) {
    const double count = are_fractions ? std::floor(static_cast<double>(size) * length) : length;
    // Below 2^53 a double is exact; also keeps the conversion defined.
    if (count != std::floor(count) || count > 0x1p53) {
      throw ValueError("random_split: expected whole numbers, or fractions that add up to 1; got {} (the sum is {})",
                       length, sum);
    }
    counts.push_back(static_cast<int64_t>(count));
  }
  int64_t given = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (size_t i = 0; are_fractions && given < size; ++i, ++given)
    ++counts[i % counts.size()];
  if (given != size) {
    throw ValueError(
        "Sum of input lengths does not equal the length of the input dataset! The lengths add up to {}, the dataset "
        "has {} examples",
        given, size);
  }
  return counts;
}

}  // namespace

std::vector<std::vector<int64_t>> split_indices(int64_t size, const std::vector<double>& lengths, uint64_t seed) {
  const std::vector<int64_t> counts = counts_of(size, lengths);
  const std::vector<int64_t> order = permutation(size, seed);
  std::vector<std::vector<int64_t>> parts;
  auto begin = order.begin();
  for (const int64_t count : counts) {
    parts.emplace_back(begin, begin + count);
    begin += count;
  }
  return parts;
}

}  // namespace brigade::data::detail
