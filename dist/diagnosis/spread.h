// Derives from the variance over the ranks how far one rank stands apart.
#pragma once

#include <cmath>

namespace brigade::dist {

// How far one value is from the others if those are equal: n values, one of them d away from the
// rest, have the variance d^2 (n - 1) / n^2. 0 for a single rank.
inline double distance_of_one(double variance, int ranks) {
  return ranks < 2 ? 0.0 : std::sqrt(variance) * ranks / std::sqrt(static_cast<double>(ranks - 1));
}

}  // namespace brigade::dist
