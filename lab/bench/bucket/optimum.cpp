// Compares costs per byte.
#include <brigade/lab/bench/bucket/optimum.h>

#include <brigade/core/error.h>
#include <brigade/lab/bench/benchmark.h>

#include <fmt/format.h>

#include <limits>

namespace brigade::lab::bench {
namespace {

double per_mib(double us, int64_t bytes) { return us * kMebibyte / static_cast<double>(bytes); }

double cost_of(const BucketCost& cost) {
  double us = 0;
  for (const auto& [term, time] : cost.terms_us)
    us += time;
  return per_mib(us, cost.bytes);
}

std::string grows_most(const BucketCost& best, const BucketCost& other) {
  std::string most;
  double largest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < best.terms_us.size(); ++i) {
    const double growth = per_mib(other.terms_us[i].second, other.bytes) - per_mib(best.terms_us[i].second, best.bytes);
    if (growth > largest) {
      largest = growth;
      most = best.terms_us[i].first;
    }
  }
  return most;
}

}  // namespace

Optimum find_optimum(std::span<const BucketCost> costs) {
  if (costs.empty()) throw ValueError("no bucket sizes to compare");
  size_t best = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    if (costs[i].bytes <= 0) throw ValueError("a bucket of {} bytes cannot be compared", costs[i].bytes);
    if (cost_of(costs[i]) < cost_of(costs[best])) best = i;
  }
  const double least = cost_of(costs[best]);
  size_t from = best;
  size_t to = best;
  while (from > 0 && cost_of(costs[from - 1]) <= 1.1 * least)
    --from;
  while (to + 1 < costs.size() && cost_of(costs[to + 1]) <= 1.1 * least)
    ++to;
  Optimum found{.bytes = costs[best].bytes,
                .us_per_mib = least,
                .from_bytes = costs[from].bytes,
                .to_bytes = costs[to].bytes,
                .largest = {},
                .smaller_pay = best > 0 ? grows_most(costs[best], costs.front()) : "",
                .larger_pay = best + 1 < costs.size() ? grows_most(costs[best], costs.back()) : ""};
  double largest = -1;
  for (const auto& [term, time] : costs[best].terms_us) {
    if (time <= largest) continue;
    largest = time;
    found.largest = term;
  }
  found.largest_share = least > 0 ? per_mib(largest, found.bytes) / least : 0;
  return found;
}

std::string in_words(const Optimum& optimum) {
  std::string text = fmt::format("least at {} ({:.3g} us/MiB, {:.0f} % {}", byte_size_in_words(optimum.bytes),
                                 optimum.us_per_mib, 100 * optimum.largest_share, optimum.largest);
  if (optimum.from_bytes < optimum.to_bytes)
    text += fmt::format("; {} to {} within 10 %", byte_size_in_words(optimum.from_bytes),
                        byte_size_in_words(optimum.to_bytes));
  text += ")";
  if (!optimum.smaller_pay.empty()) text += "; smaller ones pay " + optimum.smaller_pay;
  if (!optimum.larger_pay.empty())
    text += fmt::format("{} larger ones {}", optimum.smaller_pay.empty() ? ";" : ",",
                        optimum.smaller_pay.empty() ? "pay " + optimum.larger_pay : optimum.larger_pay);
  return text;
}

}  // namespace brigade::lab::bench
