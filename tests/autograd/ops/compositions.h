// Helpers to compare an operation with its composition from others: inputs and differences.
#pragma once

#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

namespace brigade::test {

// Standard normal float64 numbers, a leaf that requires grad.
inline Tensor normal_input(const Shape& sizes, uint64_t seed) {
  RandomGenerator generator(seed);
  return randn(sizes, {kFloat64}, &generator).requires_grad_();
}

inline double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return max(abs((a - b).detach()).reshape({-1}), 0).values.item();
}

}  // namespace brigade::test
