// How far numbers are from what was expected.
#pragma once

#include <brigade/core/tensor.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace brigade::test {

// The larger of two errors; NaN, which std::max drops, is the largest.
inline double worse(double worst, double error) { return std::isnan(error) ? INFINITY : std::max(worst, error); }

// Each value within `bound` of what was expected, relative to it above 1.
inline void check_near(const Tensor& found, const std::vector<double>& expected, double bound) {
  const std::vector<double> values = found.to_vector<double>();
  REQUIRE(values.size() == expected.size());
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i)
    worst = worse(worst, std::abs(values[i] - expected[i]) / std::max(1.0, std::abs(expected[i])));
  CHECK(worst <= bound);
}

}  // namespace brigade::test
