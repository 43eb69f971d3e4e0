// Runs an optimizer against a scalar reference formula.
#pragma once

#include <brigade/kernels/factory.h>
#include <brigade/optim/optim.h>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

namespace brigade::test {

inline Tensor parameter_of(DType dtype) {
  return from_values<double>(std::vector<double>{0.5, -1.25, 2}, {3}).to(dtype).detach().requires_grad_();
}

// The gradient at value p in step t. It depends on both, so an error in one step shows in the next.
inline double slope(double p, int t) { return 0.3 * p + std::sin(t + 1.0); }

inline void set_gradient(const Tensor& parameter, int t) {
  std::vector<double> values;
  for (const double p : parameter.to_vector<double>())
    values.push_back(slope(p, t));
  parameter.set_grad(tensor(values, parameter.sizes()).to(parameter.dtype()));
}

// Runs five steps. `formula(i, value, gradient, t)` returns the next value of element i; it is evaluated in double on
// its own sequence of values and keeps its own state.
inline void compare(optim::Optimizer& optimizer, const Tensor& parameter,
                    const std::function<double(size_t, double, double, int)>& formula, double tolerance) {
  std::vector<double> expected = parameter.to_vector<double>();
  for (int t = 0; t < 5; ++t) {
    CAPTURE(t);
    set_gradient(parameter, t);
    const uint32_t version = parameter.version();
    optimizer.step();
    CHECK(parameter.version() == version + 1);
    const auto values = parameter.to_vector<double>();
    for (size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      expected[i] = formula(i, expected[i], slope(expected[i], t), t);
      CHECK(std::abs(values[i] - expected[i]) <= tolerance * std::max(1.0, std::abs(expected[i])));
    }
  }
}

// (dtype, tolerance after five steps).
inline const std::vector<std::pair<DType, double>> kPrecisions = {{kFloat64, 1e-13}, {kFloat32, 2e-6}};

}  // namespace brigade::test
