// Finds ranks whose gradients are far from those of the middle rank.
#include <brigade/dist/diagnosis/outlier.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace brigade::dist {

namespace {

// log2 below which a rank's gradients are noise.
double noise_of(const std::vector<GradientSize>& sizes) {
  double all = 0;
  for (const GradientSize& size : sizes)
    all += std::exp2(size.log2);
  return std::log2(all) - 33;
}

struct Far {
  int rank = 0;
  double offset = 0;  // from the middle; below 0: it is smaller
  std::vector<int> others;
};

// The rank farthest from the middle; with two ranks the larger one.
Far farthest(std::vector<std::pair<double, int>> sizes) {
  std::sort(sizes.begin(), sizes.end());
  const double middle = sizes.size() == 2 ? sizes.front().first : sizes[sizes.size() / 2].first;
  const auto& far =
      std::abs(sizes.front().first - middle) > std::abs(sizes.back().first - middle) ? sizes.front() : sizes.back();
  Far found{.rank = far.second, .offset = far.first - middle, .others = {}};
  for (const auto& [size, rank] : sizes) {
    if (rank != far.second) found.others.push_back(rank);
  }
  std::sort(found.others.begin(), found.others.end());
  return found;
}

}  // namespace

Outlier find_outlier(std::span<const std::vector<GradientSize>> by_rank) {
  std::vector<double> noise;
  for (const std::vector<GradientSize>& sizes : by_rank)
    noise.push_back(noise_of(sizes));
  Outlier found;
  for (uint32_t i = 0; i < by_rank.front().size(); ++i) {
    std::vector<std::pair<double, int>> sizes;
    bool is_noise = false;
    for (size_t r = 0; r < by_rank.size(); ++r) {
      const GradientSize& size = by_rank[r][i];
      if (!size.is_there()) continue;
      sizes.emplace_back(size.log2, static_cast<int>(r));
      is_noise = is_noise || size.log2 < noise[r];
    }
    if (sizes.size() < 2 || is_noise) continue;
    const Far far = farthest(sizes);
    if (std::abs(far.offset) < 9) continue;
    found.parameters.push_back({i, far.rank, far.others});
    if (std::find(found.ranks.begin(), found.ranks.end(), far.rank) == found.ranks.end())
      found.ranks.push_back(far.rank);
    if (std::abs(far.offset) <= std::abs(found.offset)) continue;
    found.offset = far.offset;
    found.hook = by_rank[static_cast<size_t>(far.rank)][i].hook;
    found.hooks_differ = std::any_of(sizes.begin(), sizes.end(), [&](const auto& size_and_rank) {
      return by_rank[static_cast<size_t>(size_and_rank.second)][i].hook != found.hook;
    });
  }
  return found;
}

bool OutlierStreak::add(const Outlier& found) {
  backwards_ = found.ranks == ranks_ ? backwards_ + 1 : 1;
  ranks_ = found.ranks;
  return backwards_ >= kBackwards;
}

}  // namespace brigade::dist
