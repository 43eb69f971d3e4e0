// Compares the times at which the ranks' gradients became ready.
#include <brigade/dist/diagnosis/slow_rank.h>

#include <brigade/dist/diagnosis/numbers.h>

#include <algorithm>

namespace brigade::dist {

namespace {

bool is_late(double by_ms, double others_ms) { return by_ms > 12 && by_ms > others_ms / 2; }

int64_t median(std::vector<int64_t> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// The times of the other ranks for one parameter.
std::vector<int64_t> times_of_others(std::span<const ReadyTimes> ranks, size_t slow, uint32_t parameter) {
  std::vector<int64_t> others;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (r != slow && ranks[r][parameter] >= 0) others.push_back(ranks[r][parameter]);
  }
  return others;
}

uint32_t first_late_parameter(std::span<const ReadyTimes> ranks, size_t slow, int64_t lost) {
  const ReadyTimes& times = ranks[slow];
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < times.size(); ++i) {
    if (times[i] >= 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return times[a] < times[b]; });
  for (const uint32_t parameter : order) {
    const std::vector<int64_t> others = times_of_others(ranks, slow, parameter);
    if (!others.empty() && times[parameter] - median(others) > lost / 2) return parameter;
  }
  return order.back();
}

}  // namespace

std::optional<SlowRank> find_slow_rank(std::span<const ReadyTimes> ranks) {
  std::vector<std::pair<int64_t, size_t>> last;  // time of the last gradient, rank
  for (size_t r = 0; r < ranks.size(); ++r) {
    const auto latest = std::max_element(ranks[r].begin(), ranks[r].end());
    if (latest != ranks[r].end() && *latest >= 0) last.emplace_back(*latest, r);
  }
  if (last.size() < 2) return std::nullopt;
  const auto slowest = std::max_element(last.begin(), last.end());
  const auto [time, rank] = *slowest;
  last.erase(slowest);
  std::vector<int64_t> others;
  for (const auto& [other, unused] : last)
    others.push_back(other);
  const int64_t typical = median(std::move(others));
  if (!is_late(static_cast<double>(time - typical) * 1e-3, static_cast<double>(typical) * 1e-3)) return std::nullopt;
  return SlowRank{static_cast<int>(rank), time, typical, first_late_parameter(ranks, rank, time - typical)};
}

bool may_have_slow_rank(double mean_ms, double variance, int ranks) {
  const double distance = distance_of_one(variance, ranks);
  return is_late(distance, mean_ms - distance / ranks);
}

bool SlowRankStreak::add(const std::optional<SlowRank>& found) {
  const int rank = found ? found->rank : -1;
  backwards_ = rank < 0 ? 0 : rank == rank_ ? backwards_ + 1 : 1;
  rank_ = rank;
  return backwards_ >= kBackwards;
}

}  // namespace brigade::dist
