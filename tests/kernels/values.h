// Helpers of the kernel tests: constructing tensors and reading their elements.
#pragma once

#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <near.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace brigade::test {

inline constexpr DType kEveryDType[] = {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kUInt8, kBool};
inline constexpr DType kEveryFloating[] = {kFloat64, kFloat32, kFloat16, kBFloat16};

// The allowed error of a sum or product of a few numbers against double: absolute up to 1, relative above.
inline double tolerance(DType dtype) {
  switch (dtype) {
    case kFloat64: return 1e-12;
    case kFloat32: return 1e-5;
    case kFloat16: return 2e-3;
    default: return 1.6e-2;
  }
}
inline bool is_close(double found, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(found);
  return found == expected || std::abs(found - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

// Small values that every dtype holds exactly (0..3 for unsigned and bool).
inline Tensor numbers(const Shape& sizes, DType dtype, int seed = 0) {
  std::vector<double> values;
  const bool is_signed = dtype != kUInt8 && dtype != kBool;
  for (int64_t i = 0; i < sizes.numel(); ++i)
    values.push_back(static_cast<double>((i * 5 + seed) % 7) - (is_signed ? 3 : 0));
  if (dtype == kBool) {
    for (double& v : values)
      v = v > 3 ? 1 : 0;
  }
  return kernels::cast(brigade::tensor(values, sizes), dtype);
}

// 0..22 in an order other than that of memory; alternating for bool.
inline Tensor counted(const Shape& sizes, DType dtype, int first) {
  std::vector<double> values;
  for (int64_t i = 0; i < sizes.numel(); ++i)
    values.push_back(dtype == kBool ? (i + first) % 2 : static_cast<double>((i * 7 + first) % 23));
  return kernels::cast(tensor(values, sizes), dtype);
}

inline Tensor random(const Shape& sizes, uint64_t seed, DType dtype = kFloat32) {
  RandomGenerator generator(seed);
  return kernels::cast(brigade::randn(sizes, kFloat64, &generator), dtype);
}

inline Tensor row(const std::vector<double>& values, DType dtype = kFloat64) {
  return kernels::cast(brigade::tensor(values, {static_cast<int64_t>(values.size())}), dtype);
}

inline double at(const Tensor& x, int64_t i) { return brigade::detail::element_as_double(x, i); }
// Element i of the broadcast of x to sizes.
inline double broadcast_at(const Tensor& x, const Shape& sizes, int64_t i) { return at(view::expand(x, sizes), i); }

inline double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  double worst = 0;
  for (int64_t i = 0; i < a.numel(); ++i)
    worst = worse(worst, std::abs(at(a, i) - at(b, i)));
  return worst;
}

}  // namespace brigade::test
