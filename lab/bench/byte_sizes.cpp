// Parses sizes such as 64K and ranges such as 1K-1M:x4, and writes sizes in words.
#include <brigade/lab/bench/benchmark.h>

#include <brigade/core/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

namespace brigade::lab {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
// Each size takes a while to measure, so more than this is a mistake.
constexpr size_t kMostSizes = 10'000;

void add_size(int64_t size, const std::string& word, std::vector<int64_t>& sizes) {
  if (sizes.size() == kMostSizes)
    throw ValueError("at most {} sizes are measured in one run, and '{}' makes more; take a larger step or factor",
                     kMostSizes, word);
  sizes.push_back(size);
}

const std::map<std::string, int64_t>& units() {
  static const std::map<std::string, int64_t> known{{"", 1},          {"B", 1},       {"K", 1 << 10},  {"k", 1 << 10},
                                                    {"KiB", 1 << 10}, {"M", 1 << 20}, {"m", 1 << 20},  {"MiB", 1 << 20},
                                                    {"G", 1 << 30},   {"g", 1 << 30}, {"GiB", 1 << 30}};
  return known;
}

// How a range grows: the next size is the previous one times `factor`, plus `step`.
struct Growth {
  int64_t factor = 1;
  int64_t step = 0;
};

// "x4", "+64K"
Growth parse_growth(const std::string& text, const std::string& range) {
  if (text.starts_with('+')) return {.step = parse_byte_size(text.substr(1))};
  Growth growth;
  const char* const end = text.data() + text.size();
  if (text.starts_with('x')) {
    const auto [stopped, error] = std::from_chars(text.data() + 1, end, growth.factor);
    if (error == std::errc() && stopped == end && growth.factor >= 2) return growth;
  }
  throw ValueError(
      "behind the colon of a range stands x and a factor of at least 2 (4K-64M:x4) or + and a step (1M-8M:+1M), got '{}'",
      range);
}

void add_range(const std::string& range, size_t dash, int64_t factor, std::vector<int64_t>& sizes) {
  const size_t colon = range.find(':');
  const int64_t first = parse_byte_size(range.substr(0, dash));
  const int64_t last = parse_byte_size(range.substr(dash + 1, colon - std::min(colon, dash + 1)));
  if (first > last) throw ValueError("a range of sizes goes from the smaller to the larger, got '{}'", range);
  const Growth growth =
      colon == std::string::npos ? Growth{.factor = factor} : parse_growth(range.substr(colon + 1), range);
  add_size(first, range, sizes);
  while (sizes.back() <= (last - growth.step) / growth.factor)
    add_size(sizes.back() * growth.factor + growth.step, range, sizes);
}

}  // namespace

int64_t parse_byte_size(const std::string& text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  const auto unit = units().find(std::string(stopped, end));
  if (error == std::errc::invalid_argument || value < 1 || unit == units().end())
    throw ValueError("a size is a whole number above 0 with K, M, G (powers of 1024) or nothing, got '{}'", text);
  if (error != std::errc() || value > kMost / unit->second)
    throw ValueError("a size of '{}' is more than 64 bits hold", text);
  return value * unit->second;
}

std::vector<int64_t> parse_byte_sizes(const std::vector<std::string>& words, int64_t factor) {
  if (factor < 2) throw ValueError("sizes of a range grow by a factor of at least 2, got {}", factor);
  std::vector<int64_t> sizes;
  for (const std::string& word : words) {
    const size_t dash = word.find('-', 1);
    if (dash == std::string::npos) {
      add_size(parse_byte_size(word), word, sizes);
    } else {
      add_range(word, dash, factor, sizes);
    }
  }
  return sizes;
}

std::string byte_size_in_words(int64_t bytes) {
  if (bytes % (1 << 30) == 0) return fmt::format("{} GiB", bytes >> 30);
  if (bytes % (1 << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  if (bytes % (1 << 10) == 0) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} B", bytes);
}

}  // namespace brigade::lab
