// Tensors on the device under test, and what the CPU says beside them.
#pragma once

#include <brigade/core/factory.h>
#include <brigade/core/random.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <near.h>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace brigade::test {

inline const Device kDevice(kCUDA, 0);

// With the same strides where the source is a view of everything it holds, dense otherwise.
inline Tensor on_device(const Tensor& x) {
  Tensor result = empty(x.sizes(), {x.dtype(), kDevice});
  kernels::copy(result, x);
  return result;
}

inline Tensor on_cpu(const Tensor& x) {
  Tensor result = empty(x.sizes(), x.dtype());
  kernels::copy(result, x);
  return result;
}

// In float64, on the CPU; an undefined tensor stays so.
inline Tensor exact(const Tensor& x) { return x.defined() ? kernels::cast(on_cpu(x), kFloat64) : x; }

// The same numbers `elements` past the start of what was allocated.
inline Tensor shifted(const Tensor& x, int64_t elements) {
  const Tensor room = empty({x.numel() + elements}, x.options());
  const Tensor result = view::as_strided(room, x.sizes(), contiguous_strides(x.sizes()), elements);
  kernels::copy(result, x);
  return result;
}

// Normal numbers (whole ones for integers), the same each time.
inline Tensor numbers(const Shape& sizes, DType dtype, uint64_t seed = 1) {
  RandomGenerator generator(seed);
  const Tensor x = empty(sizes, kFloat64);
  kernels::fill_normal(x, generator.reserve(static_cast<uint64_t>(x.numel())), 0, dtype == kUInt8 ? 1 : 3);
  if (dtype == kUInt8 || dtype == kBool) kernels::copy(x, kernels::unary(x, kernels::UnaryOp::Abs));
  return kernels::cast(x, dtype);
}

// Largest difference relative to the larger of 1 and the CPU's value; infinite where one is a NaN and the other not.
inline double difference(const Tensor& found, const Tensor& expected) {
  const auto a = on_cpu(found).to_vector<double>();
  const auto b = expected.to_vector<double>();
  double worst = found.sizes() == expected.sizes() && found.dtype() == expected.dtype() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double distance = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    worst = worse(worst, distance);
  }
  return worst;
}

// One rounding of the dtype, with room for functions that the device computes by other means.
inline double tolerance(DType dtype) {
  switch (dtype) {
    case kFloat64: return 1e-14;
    case kFloat32: return 1e-6;
    case kFloat16: return 1e-3;
    case kBFloat16: return 8e-3;
    default: return 0;
  }
}

inline const std::vector<DType> kAllDTypes{kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kUInt8, kBool};
inline const std::vector<DType> kFloatingDTypes{kFloat64, kFloat32, kFloat16, kBFloat16};

}  // namespace brigade::test
